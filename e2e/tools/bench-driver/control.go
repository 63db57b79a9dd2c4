package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"csi-provisioner.dev/e2e/tools/calllog"
	"csi-provisioner.dev/e2e/tools/script"
)

// control is what a test may ask of a running driver:
//
//	GET  /volumes               volumes and snapshots, sorted by ID
//	GET  /calls?method=NAME     calls so far, running ones included
//	GET  /script                rules with their counters
//	POST /script                replaces all rules (JSON or YAML)
//	POST /die                   ends the process at once
type control struct {
	volumes *store
	log     *calllog.Log
	engine  *script.Engine
}

// serveControl listens and serves in the background. The address that it really got is told on stdout.
func serveControl(address string, c control) error {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
		_ = os.Remove(path)
	} else if host, _, err := net.SplitHostPort(address); err != nil || !net.ParseIP(host).IsLoopback() {
		return fmt.Errorf("--control %s: only loopback addresses, such as 127.0.0.1:0", address)
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	fmt.Printf("control %s\n", listener.Addr())
	routes := http.NewServeMux()
	routes.HandleFunc("GET /volumes", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.volumes.all()) })
	routes.HandleFunc("GET /calls", func(w http.ResponseWriter, r *http.Request) { answer(w, c.log.Calls(r.URL.Query().Get("method"))) })
	routes.HandleFunc("GET /script", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.engine.Rules()) })
	routes.HandleFunc("POST /script", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err == nil {
			err = c.engine.Set(text)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w, c.engine.Rules())
	})
	routes.HandleFunc("POST /die", func(http.ResponseWriter, *http.Request) { os.Exit(script.ExitCode) })
	go func() { _ = http.Serve(listener, routes) }()
	return nil
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}
