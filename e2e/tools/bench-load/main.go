// Bench-load loads a real API server with claims and times provisioners on them, one after the other in one run.
//
// It wants a control plane of e2e/control-plane with AUDIT=1 and gives each candidate a fresh bench-driver, the rights
// of user "sidecar" and the same foreign claims and volumes around it. With several rounds, every second round goes
// backwards, so that no candidate always comes first. It prints a Markdown table and writes all readings as JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// candidate is a provisioner under test.
type candidate struct {
	label   string
	command []string
}

func main() {
	var candidates []candidate
	b := &bench{}
	flag.StringVar(&b.directory, "dir", "", "folder of the control plane (required)")
	flag.StringVar(&b.driver, "driver", "", "bench-driver program (default: beside this one)")
	driverFlags := flag.String("driver-flags", "", "further flags of the driver")
	flag.IntVar(&b.preload, "preload", 0, "bound claims and volumes of another driver, made first")
	flag.DurationVar(&b.timeout, "timeout", 400*time.Second, "for binding, and again for deleting")
	scenarios := flag.String("scenarios", "claims,limited,idle", "of claims, limited, idle, start, churn, owned, attached, unanswered")
	n := flag.Int("n", 200, "claims in scenario claims")
	rounds := flag.Int("rounds", 1, "measure everything that often")
	out := flag.String("out", "", "file for all readings as JSON")
	flag.StringVar(&b.scratch, "scratch", "", "folder for logs and sockets (default DIR/bench)")
	flag.Func("candidate", "LABEL=COMMAND, split at blanks; repeat for each", func(text string) error {
		label, command, _ := strings.Cut(text, "=")
		if label == "" || len(strings.Fields(command)) == 0 {
			return fmt.Errorf("wants LABEL=COMMAND")
		}
		candidates = append(candidates, candidate{label, strings.Fields(command)})
		return nil
	})
	flag.Parse()
	b.driverFlags = strings.Fields(*driverFlags)
	results, err := measure(b, candidates, strings.Split(*scenarios, ","), *n, *rounds)
	labels := []string{}
	for _, c := range candidates {
		labels = append(labels, c.label)
	}
	writeTable(os.Stdout, labels, results)
	if *out != "" {
		text, _ := json.MarshalIndent(results, "", " ")
		if failed := os.WriteFile(*out, append(text, '\n'), 0o644); err == nil {
			err = failed
		}
	}
	failed := slices.ContainsFunc(results, func(r result) bool { return r.Failure != "" })
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-load:", err)
	}
	if err != nil || failed {
		os.Exit(1)
	}
}

// measure runs everything and returns what was measured even when it ends early.
func measure(b *bench, candidates []candidate, names []string, n, rounds int) ([]result, error) {
	results := []result{}
	if b.directory == "" || len(candidates) == 0 {
		return results, fmt.Errorf("--dir and at least one --candidate are needed")
	}
	plan := []scenario{}
	for _, name := range names {
		s, err := scenarioNamed(name, n)
		if err != nil {
			return results, err
		}
		plan = append(plan, s)
	}
	if err := b.prepare(); err != nil {
		return results, err
	}
	begin := time.Now()
	if err := b.makeForeign(); err != nil {
		return results, err
	}
	fmt.Fprintf(os.Stderr, "%d foreign claims and volumes after %.1f s\n", b.preload, time.Since(begin).Seconds())
	// Whoever comes first on a fresh API server would pay for its first-time work.
	warmUp, err := scenarioNamed("start", 1)
	if err != nil {
		return results, err
	}
	if _, err := b.run("warm-up", candidates[0].command, warmUp, 0); err != nil {
		return results, fmt.Errorf("warm-up: %w", err)
	}
	for _, s := range plan {
		for round := range rounds {
			order := slices.Clone(candidates)
			if round%2 == 1 {
				slices.Reverse(order)
			}
			for _, c := range order {
				r, err := b.run(c.label, c.command, s, round)
				if err != nil {
					return results, fmt.Errorf("%s, %s: %w", s.name, c.label, err)
				}
				results = append(results, r)
				line, _ := json.Marshal(r)
				fmt.Fprintf(os.Stderr, "%s\n", line)
			}
		}
	}
	return results, nil
}

// prepare finds the control plane, the driver and a folder for logs.
func (b *bench) prepare() error {
	var err error
	if b.directory, err = filepath.Abs(b.directory); err != nil {
		return err
	}
	if b.api, err = newAPI(filepath.Join(b.directory, "kubeconfig")); err != nil {
		return err
	}
	if size(filepath.Join(b.directory, "audit.log")) == 0 {
		return fmt.Errorf("%s has no audit log; start the control plane with AUDIT=1", b.directory)
	}
	text, err := os.ReadFile(filepath.Join(b.directory, "apiserver.pid"))
	if err != nil {
		return err
	}
	if b.serverPID, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		return err
	}
	if b.driver == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		b.driver = filepath.Join(filepath.Dir(self), "bench-driver")
	}
	if b.scratch == "" {
		b.scratch = filepath.Join(b.directory, "bench")
	}
	b.stamp = strconv.FormatInt(time.Now().Unix(), 36)
	return os.MkdirAll(b.scratch, 0o755)
}
