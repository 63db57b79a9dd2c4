package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

// loaders is how many requests the load itself has open at most.
const loaders = 16

// api is the administrator's side of the API server, in plain JSON.
type api struct {
	server, token string
	client        *http.Client
}

// object is any Kubernetes object.
type object = map[string]any

// newAPI reads a kubeconfig as e2e/control-plane writes it: one cluster with its authority, one user with a token.
func newAPI(path string) (*api, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server    string `json:"server"`
				Authority []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Token string `json:"token"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	if len(config.Clusters) != 1 || len(config.Users) != 1 {
		return nil, fmt.Errorf("%s: wants exactly one cluster and one user", path)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.Clusters[0].Cluster.Authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: loaders + 4}
	return &api{server: config.Clusters[0].Cluster.Server, token: config.Users[0].User.Token, client: &http.Client{Transport: transport}}, nil
}

// open sends a request and returns the answer's body; an answer of 300 or more is an error, except 404 and 409.
func (a *api) open(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.server+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("User-Agent", "bench-load")
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 && answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusConflict {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		return nil, fmt.Errorf("%s %s: %s %s", method, path, answer.Status, text)
	}
	return answer.Body, nil
}

// call sends a request and reads the answer into result, if that is not nil.
func (a *api) call(method, path string, body, result any) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answer, err := a.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	text, err := io.ReadAll(answer)
	if err != nil || result == nil {
		return err
	}
	return json.Unmarshal(text, result)
}

// each runs work for 0..n-1, many at a time, and returns the errors.
func each(n int, work func(int) error) error {
	numbers := make(chan int)
	errs := make([]error, loaders)
	var all sync.WaitGroup
	for worker := range loaders {
		all.Go(func() {
			for number := range numbers {
				if err := work(number); err != nil && errs[worker] == nil {
					errs[worker] = err
				}
			}
		})
	}
	for number := range n {
		numbers <- number
	}
	close(numbers)
	all.Wait()
	return errors.Join(errs...)
}

// slim is the part of claims and volumes that the load looks at.
type slim struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		ClaimRef struct {
			Namespace string `json:"namespace"`
		} `json:"claimRef"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

// tracker follows one resource by watch, which costs the API server far less than asking again and again.
type tracker struct {
	mu     sync.Mutex
	phases map[string]string
}

// track starts a tracker for objects that want accepts. It returns after the first list.
func (a *api) track(ctx context.Context, path string, want func(slim) bool) (*tracker, error) {
	t := &tracker{}
	version, err := t.list(a, path, want)
	if err != nil {
		return nil, err
	}
	go func() {
		for ctx.Err() == nil {
			t.watch(ctx, a, path, version, want)
			if ctx.Err() != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
			if next, err := t.list(a, path, want); err == nil {
				version = next
			}
		}
	}()
	return t, nil
}

func (t *tracker) list(a *api, path string, want func(slim) bool) (string, error) {
	var found struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []slim `json:"items"`
	}
	if err := a.call(http.MethodGet, path, nil, &found); err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phases = map[string]string{}
	for _, item := range found.Items {
		if want(item) {
			t.phases[item.Metadata.Name] = item.Status.Phase
		}
	}
	return found.Metadata.ResourceVersion, nil
}

func (t *tracker) watch(ctx context.Context, a *api, path, version string, want func(slim) bool) {
	stream, err := a.open(ctx, http.MethodGet, path+"?watch=1&resourceVersion="+version, nil)
	if err != nil {
		return
	}
	defer stream.Close()
	events := json.NewDecoder(stream)
	for {
		var event struct {
			Type   string `json:"type"`
			Object slim   `json:"object"`
		}
		if events.Decode(&event) != nil || event.Type == "ERROR" {
			return
		}
		if !want(event.Object) {
			continue
		}
		t.mu.Lock()
		if event.Type == "DELETED" {
			delete(t.phases, event.Object.Metadata.Name)
		} else {
			t.phases[event.Object.Metadata.Name] = event.Object.Status.Phase
		}
		t.mu.Unlock()
	}
}

// count returns how many objects are in a phase, all if it is empty.
func (t *tracker) count(phase string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if phase == "" {
		return len(t.phases)
	}
	n := 0
	for _, p := range t.phases {
		if p == phase {
			n++
		}
	}
	return n
}

// names returns the names of all objects.
func (t *tracker) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := []string{}
	for name := range t.phases {
		found = append(found, name)
	}
	return found
}
