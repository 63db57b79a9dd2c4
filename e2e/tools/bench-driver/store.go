package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"sync"
)

// volume is what the driver knows of one volume or snapshot.
type volume struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Bytes      int64             `json:"bytes"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Mutable    map[string]string `json:"mutable,omitempty"`
	// Source is "volume/ID" or "snapshot/ID", empty for a blank volume.
	Source string `json:"source,omitempty"`
	// Node is where the volume lives; empty without topology.
	Node string `json:"node,omitempty"`
	// Snapshot marks a snapshot; Source is then its volume.
	Snapshot bool `json:"snapshot,omitempty"`
	// Published lists the nodes it is attached to.
	Published []string `json:"published,omitempty"`
	// Gone marks a removal in the journal.
	Gone bool `json:"gone,omitempty"`
}

// store keeps volumes by identifier and name, and optionally in a journal with one JSON line per change.
// The journal survives the process, not the machine: there is no sync.
type store struct {
	mu      sync.Mutex
	byID    map[string]*volume
	byName  map[string]*volume
	used    map[string]int64
	serial  int
	journal *os.File
}

// openStore reads the journal, if there is one, and writes it anew without what is gone.
func openStore(path string) (*store, error) {
	s := &store{byID: map[string]*volume{}, byName: map[string]*volume{}, used: map[string]int64{}}
	if path == "" {
		return s, nil
	}
	if err := s.read(path); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	s.journal = file
	if err := s.write(&volume{ID: fmt.Sprint(s.serial), Gone: true}); err != nil {
		return nil, err
	}
	for _, v := range s.list() {
		if err := s.write(v); err != nil {
			return nil, err
		}
	}
	return s, os.Rename(path+".new", path)
}

func (s *store) read(path string) error {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		v := &volume{}
		// A driver killed in the middle of a line never answered that call.
		if json.Unmarshal(lines.Bytes(), v) != nil {
			continue
		}
		number := 0
		_, _ = fmt.Sscanf(v.ID, "v%d-", &number)
		if v.Gone && v.Name == "" {
			_, _ = fmt.Sscan(v.ID, &number)
		}
		s.serial = max(s.serial, number)
		s.drop(v.ID)
		if !v.Gone {
			s.keep(v)
		}
	}
	return lines.Err()
}

// keep and drop change memory only; the caller holds the lock.
func (s *store) keep(v *volume) {
	s.byID[v.ID], s.byName[v.Name] = v, v
	s.used[v.Node] += v.Bytes
}

func (s *store) drop(id string) {
	if v, ok := s.byID[id]; ok {
		delete(s.byID, id)
		delete(s.byName, v.Name)
		s.used[v.Node] -= v.Bytes
	}
}

// write appends to the journal; the caller holds the lock.
func (s *store) write(v *volume) error {
	if s.journal == nil {
		return nil
	}
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = s.journal.Write(append(line, '\n'))
	return err
}

// create returns the volume of that name, made if there was none. Only if it was made, made is true.
func (s *store) create(wanted volume) (found volume, made bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.byName[wanted.Name]; ok {
		return *v, false, nil
	}
	s.serial++
	wanted.ID = fmt.Sprintf("v%d-%s", s.serial, wanted.Name)
	if err := s.write(&wanted); err != nil {
		return volume{}, false, err
	}
	s.keep(&wanted)
	return wanted, true, nil
}

// remove forgets a volume; one it does not know is no error.
func (s *store) remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.byID[id]
	if !ok {
		return nil
	}
	if err := s.write(&volume{ID: id, Name: v.Name, Gone: true}); err != nil {
		return err
	}
	s.drop(id)
	return nil
}

// change applies a change to one volume; false if it does not exist.
func (s *store) change(id string, apply func(*volume)) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.byID[id]
	if !ok {
		return false, nil
	}
	copied := *v
	apply(&copied)
	s.drop(id)
	s.keep(&copied)
	return true, s.write(&copied)
}

// get returns a copy.
func (s *store) get(id string) (volume, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.byID[id]
	if !ok {
		return volume{}, false
	}
	return *v, true
}

// usedBytes tells how much is taken on a node.
func (s *store) usedBytes(node string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[node]
}

// all returns copies of everything, sorted by identifier.
func (s *store) all() []volume {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []volume{}
	for _, v := range s.list() {
		found = append(found, *v)
	}
	return found
}

func (s *store) list() []*volume {
	found := make([]*volume, 0, len(s.byID))
	for _, v := range s.byID {
		found = append(found, v)
	}
	sort.Slice(found, func(i, j int) bool { return found[i].ID < found[j].ID })
	return found
}
