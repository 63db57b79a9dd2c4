package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"csi-provisioner.dev/e2e/tools/calllog"
)

// spread sums up moments, in seconds since the load began.
type spread struct {
	P50       float64 `json:"p50"`
	Last      float64 `json:"last"`
	PerSecond float64 `json:"per_s"`
}

// spreadOf returns nil for no moments.
func spreadOf(moments []time.Time, since time.Time) *spread {
	if len(moments) == 0 {
		return nil
	}
	slices.SortFunc(moments, time.Time.Compare)
	last := moments[len(moments)-1].Sub(since).Seconds()
	return &spread{P50: moments[len(moments)/2].Sub(since).Seconds(), Last: last, PerSecond: float64(len(moments)) / last}
}

// size returns how long a file is, 0 if there is none.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// lines calls see for each line of a file from an offset on.
func lines(path string, offset int64, see func([]byte)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	reader := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		see(line)
	}
}

// audited is what user "sidecar" did, by the API server's own record.
type audited struct {
	calls            map[string]int
	created, deleted []time.Time
}

// readAudit counts finished requests as "verb resource[/subresource] code". A watch counts once, at its end.
func readAudit(path string, offset int64) (audited, error) {
	found := audited{calls: map[string]int{}}
	err := lines(path, offset, func(line []byte) {
		var event struct {
			Stage string
			Verb  string
			User  struct{ Username string }
			// RequestURI stands in for requests that are not about a resource, such as discovery.
			RequestURI     string
			ObjectRef      struct{ Resource, Subresource string }
			ResponseStatus struct{ Code int }
			StageTimestamp time.Time
		}
		if json.Unmarshal(line, &event) != nil || event.Stage != "ResponseComplete" || event.User.Username != "sidecar" {
			return
		}
		what := event.ObjectRef.Resource
		if what == "" {
			what, _, _ = strings.Cut(event.RequestURI, "?")
		}
		if event.ObjectRef.Subresource != "" {
			what += "/" + event.ObjectRef.Subresource
		}
		code := event.ResponseStatus.Code
		found.calls[fmt.Sprintf("%s %s %d", event.Verb, what, code)]++
		if what == "persistentvolumes" && code < 300 {
			switch event.Verb {
			case "create":
				found.created = append(found.created, event.StageTimestamp)
			case "delete":
				found.deleted = append(found.deleted, event.StageTimestamp)
			}
		}
	})
	return found, err
}

// readDriver counts CSI calls and tells when the first CreateVolume came.
func readDriver(path string) (calls map[string]int, first *time.Time, err error) {
	calls = map[string]int{}
	err = lines(path, 0, func(line []byte) {
		var call calllog.Call
		if json.Unmarshal(line, &call) != nil {
			return
		}
		calls[call.Method]++
		if call.Method == "CreateVolume" && first == nil {
			first = &call.Start
		}
	})
	return calls, first, err
}

// countEvents sums events of the driver's provisioner in a namespace by reason. An event that stands for several
// (its count) counts as that many.
func (a *api) countEvents(namespace, driver string) (map[string]int, error) {
	var list struct {
		Items []struct {
			Reason string `json:"reason"`
			Count  int    `json:"count"`
			Source struct {
				Component string `json:"component"`
			} `json:"source"`
			Controller string `json:"reportingComponent"`
			Series     struct {
				Count int `json:"count"`
			} `json:"series"`
		} `json:"items"`
	}
	if err := a.call(http.MethodGet, "/api/v1/namespaces/"+namespace+"/events", nil, &list); err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, event := range list.Items {
		if strings.HasPrefix(event.Source.Component, driver) || strings.HasPrefix(event.Controller, driver) {
			found[event.Reason] += max(1, event.Count, event.Series.Count)
		}
	}
	return found, nil
}
