package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// driverName is the driver that all candidates serve.
const driverName = "bench.csi.test"

// settle is how long a sidecar is left alone before the first reading; load begins afterwards.
const settle = 4 * time.Second

// scenario is one kind of load.
type scenario struct {
	name string
	// claims are made at once, then, if remove is set, deleted.
	claims int
	remove bool
	// early makes the claims before the sidecar starts.
	early bool
	// watchSeconds is how long the sidecar is observed without claims; foreignPerSecond claims of others change meanwhile.
	watchSeconds, foreignPerSecond int
	// owned bound volumes of the sidecar's own driver stand there from the beginning, each attached if attached is set.
	owned    int
	attached bool
	// unanswered claims get no final answer of the driver; they do not count as claims above.
	unanswered             int
	arguments, driverFlags []string
}

var unlimited = []string{"--kube-api-qps=1000", "--kube-api-burst=2000"}

// scenarioNamed returns a scenario, with n claims where that can be chosen.
func scenarioNamed(name string, n int) (scenario, error) {
	for _, s := range []scenario{
		{name: "claims", claims: n, remove: true, arguments: unlimited},
		{name: "limited", claims: 60},
		{name: "idle", watchSeconds: 30},
		{name: "start", claims: 1, early: true},
		{name: "churn", watchSeconds: 30, foreignPerSecond: 200},
		{name: "owned", watchSeconds: 10, owned: 10000},
		{name: "attached", watchSeconds: 10, owned: 5000, attached: true, driverFlags: []string{"--publish"}},
		{name: "unanswered", watchSeconds: 60, unanswered: 1000, early: true, arguments: unlimited},
	} {
		if s.name == name {
			return s, nil
		}
	}
	return scenario{}, fmt.Errorf("no scenario %q (claims, limited, idle, start, churn, owned, attached, unanswered)", name)
}

// result is one measured run of one candidate. Times are in seconds.
type result struct {
	Candidate string  `json:"candidate"`
	Scenario  string  `json:"scenario"`
	Round     int     `json:"round"`
	Claims    int     `json:"n"`
	Preload   int     `json:"preload"`
	Ready     float64 `json:"ready_s,omitempty"`
	Create    float64 `json:"create_s,omitempty"`
	Bound     int     `json:"bound"`
	AllBound  float64 `json:"all_bound_s,omitempty"`
	// FirstCreate runs from the start of the program to its first CreateVolume.
	FirstCreate float64 `json:"first_create_s,omitempty"`
	AllDeleted  float64 `json:"all_deleted_s,omitempty"`
	Left        int     `json:"left"`
	Stop        float64 `json:"stop_s"`
	// Idle was read after the start, After when all was bound or observed, End after the deletion.
	Idle  usage `json:"idle"`
	After usage `json:"after"`
	End   usage `json:"end"`
	// Total is exact and covers the whole life.
	Total usage `json:"total"`
	// ServerStart and ServerTotal are CPU seconds of the API server until Idle and until the end.
	ServerStart float64 `json:"apiserver_cpu_start_s"`
	ServerTotal float64 `json:"apiserver_cpu_s"`

	Created *spread        `json:"pv_created_s,omitempty"`
	Deleted *spread        `json:"pv_deleted_s,omitempty"`
	Calls   map[string]int `json:"api"`
	Driver  map[string]int `json:"driver"`
	Events  map[string]int `json:"events"`
	// Failure is empty if the run went to its end.
	Failure string `json:"failure,omitempty"`
}

// bench is everything that stays the same during a run of the program.
type bench struct {
	api            *api
	directory      string
	driver         string
	driverFlags    []string
	timeout        time.Duration
	preload        int
	foreign        string
	serverPID      int
	scratch, stamp string
	runs           int
}

func claimsPath(namespace string) string {
	return "/api/v1/namespaces/" + namespace + "/persistentvolumeclaims"
}

const volumesPath = "/api/v1/persistentvolumes"

// claim is one of the size and shape that all figures are about.
func claim(number int, class, volume string) object {
	spec := object{"storageClassName": class, "accessModes": []string{"ReadWriteOnce"}, "resources": object{"requests": object{"storage": "1Gi"}}}
	if volume != "" {
		spec["volumeName"] = volume
	}
	return object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec, "metadata": object{
		"name":        fmt.Sprintf("c%d", number),
		"labels":      object{"app": "bench", "team": "storage-team"},
		"annotations": object{"note": strings.Repeat("x", 200)},
	}}
}

func (b *bench) makeNamespace(name string) error {
	return b.api.call(http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": name}}, nil)
}

// run measures one candidate once.
func (b *bench) run(label string, command []string, s scenario, round int) (result, error) {
	b.runs++
	r := result{Candidate: label, Scenario: s.name, Round: round, Claims: s.claims, Preload: b.preload}
	namespace := fmt.Sprintf("b%d-%s", b.runs, b.stamp)
	if err := b.makeNamespace(namespace); err != nil {
		return r, err
	}
	class := object{"metadata": object{"name": "bench"}, "provisioner": driverName}
	if err := b.api.call(http.MethodPost, "/apis/storage.k8s.io/v1/storageclasses", class, nil); err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	claims, err := b.api.track(ctx, claimsPath(namespace), func(slim) bool { return true })
	if err != nil {
		return r, err
	}
	volumes, err := b.api.track(ctx, volumesPath, func(v slim) bool { return v.Spec.ClaimRef.Namespace == namespace })
	if err != nil {
		return r, err
	}
	file := func(suffix string) string {
		return filepath.Join(b.scratch, fmt.Sprintf("%d-%s-%s.%s", b.runs, s.name, label, suffix))
	}
	socket := filepath.Join(b.scratch, strconv.Itoa(b.runs)+".sock")
	flags := append([]string{b.driver, "--socket", socket, "--name", driverName, "--log", file("calls")}, b.driverFlags...)
	flags = append(flags, s.driverFlags...)
	if s.unanswered > 0 {
		rules := file("rules.json")
		if err := os.WriteFile(rules, []byte(neverAnswered), 0o644); err != nil {
			return r, err
		}
		flags = append(flags, "--script", rules)
	}
	driver, err := start(file("driver.log"), flags)
	if err != nil {
		return r, err
	}
	defer driver.stop(time.Second)
	if err := b.makeOwned(namespace, s, claims); err != nil {
		return r, err
	}
	defer b.detach(namespace, s)
	makeClaims := func() error {
		return each(s.claims+s.unanswered, func(i int) error {
			return b.api.call(http.MethodPost, claimsPath(namespace), claim(i, "bench", ""), nil)
		})
	}
	if s.early {
		if err := makeClaims(); err != nil {
			return r, err
		}
		time.Sleep(settle)
	}
	port, err := freePort()
	if err != nil {
		return r, err
	}
	audit := filepath.Join(b.directory, "audit.log")
	offset, server := size(audit), usageOf(b.serverPID).CPUSeconds
	command = append(append(append([]string{}, command...), s.arguments...), "--csi-address="+socket,
		"--kubeconfig="+filepath.Join(b.directory, "sidecar.kubeconfig"), fmt.Sprintf("--http-endpoint=127.0.0.1:%d", port))
	sidecar, err := start(file("sidecar.log"), command)
	if err != nil {
		return r, err
	}
	began, deletion := b.load(&r, s, sidecar, port, server, namespace, claims, volumes, makeClaims)
	stopped, total := sidecar.stop(20 * time.Second)
	r.Stop, r.Total = stopped.Seconds(), total
	r.ServerTotal = usageOf(b.serverPID).CPUSeconds - server
	if r.Events, err = b.api.countEvents(namespace, driverName); err != nil {
		return r, err
	}
	// The API server writes the end of a broken watch a moment after it.
	time.Sleep(500 * time.Millisecond)
	seen, err := readAudit(audit, offset)
	if err != nil {
		return r, err
	}
	r.Calls, r.Created, r.Deleted = seen.calls, spreadOf(seen.created, began), spreadOf(seen.deleted, deletion)
	var first *time.Time
	if r.Driver, first, err = readDriver(file("calls")); err != nil {
		return r, err
	}
	if first != nil {
		r.FirstCreate = first.Sub(sidecar.started).Seconds()
	}
	return r, b.cleanUp(namespace, s, claims, volumes)
}

// load does the scenario and takes the readings; it returns when the claims were made and when their deletion began.
func (b *bench) load(r *result, s scenario, sidecar *process, port int, server float64, namespace string, claims, volumes *tracker, makeClaims func() error) (began, deletion time.Time) {
	fail := func(text string) (time.Time, time.Time) {
		r.Failure = text
		return began, deletion
	}
	began = sidecar.started
	if !sidecar.waitFor(time.Minute, func() bool { return scrapable(port) }) {
		return fail("no metrics page within a minute")
	}
	r.Ready = time.Since(sidecar.started).Seconds()
	time.Sleep(settle)
	r.Idle, r.ServerStart = sidecar.usage(), usageOf(b.serverPID).CPUSeconds-server
	if s.watchSeconds > 0 {
		time.Sleep(6 * time.Second)
		r.Idle = sidecar.usage()
		if err := b.observe(s); err != nil {
			return fail(err.Error())
		}
		r.After, r.End = sidecar.usage(), sidecar.usage()
		if !sidecar.alive() {
			return fail("the sidecar ended by itself")
		}
		return began, deletion
	}
	if !s.early {
		began = time.Now()
		if err := makeClaims(); err != nil {
			return fail(err.Error())
		}
		r.Create = time.Since(began).Seconds()
	}
	bound := sidecar.waitFor(b.timeout, func() bool { return claims.count("Bound") == s.claims })
	r.AllBound, r.Bound, r.After = time.Since(began).Seconds(), claims.count("Bound"), sidecar.usage()
	r.End = r.After
	if !bound {
		return fail("not all claims were bound")
	}
	if s.remove {
		deletion = time.Now()
		if err := each(s.claims, func(i int) error {
			return b.api.call(http.MethodDelete, fmt.Sprintf("%s/c%d", claimsPath(namespace), i), nil, nil)
		}); err != nil {
			return fail(err.Error())
		}
		gone := sidecar.waitFor(b.timeout, func() bool { return volumes.count("") == 0 })
		r.AllDeleted, r.Left, r.End = time.Since(deletion).Seconds(), volumes.count(""), sidecar.usage()
		if !gone {
			return fail("not all volumes were deleted")
		}
	}
	time.Sleep(time.Second)
	return began, deletion
}

// observe lets time pass, with changes of foreign claims if the scenario has them.
func (b *bench) observe(s scenario) error {
	if s.foreignPerSecond == 0 || b.preload == 0 {
		time.Sleep(time.Duration(s.watchSeconds) * time.Second)
		return nil
	}
	total, begin := s.watchSeconds*s.foreignPerSecond, time.Now()
	return each(total, func(i int) error {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second / time.Duration(s.foreignPerSecond))))
		// Another value in each run: a patch that changes nothing is told to no watch.
		change := object{"metadata": object{"annotations": object{"change": fmt.Sprintf("%d-%d", b.runs, i)}}}
		return b.api.call(http.MethodPatch, fmt.Sprintf("%s/c%d", claimsPath(b.foreign), i%b.preload), change, nil)
	})
}

// cleanUp removes what a run left, so that the next candidate finds the same cluster.
func (b *bench) cleanUp(namespace string, s scenario, claims, volumes *tracker) error {
	_ = b.api.call(http.MethodDelete, "/apis/storage.k8s.io/v1/storageclasses/bench", nil, nil)
	left := claims.names()
	err := each(len(left), func(i int) error {
		return b.api.call(http.MethodDelete, claimsPath(namespace)+"/"+left[i], nil, nil)
	})
	if err != nil {
		return err
	}
	for end := time.Now().Add(b.timeout); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		names := volumes.names()
		if len(names) == 0 && claims.count("") == 0 {
			return b.api.call(http.MethodDelete, "/api/v1/namespaces/"+namespace, nil, nil)
		}
		err := each(len(names), func(i int) error {
			if err := b.api.call(http.MethodPatch, volumesPath+"/"+names[i], object{"metadata": object{"finalizers": nil}}, nil); err != nil {
				return err
			}
			return b.api.call(http.MethodDelete, volumesPath+"/"+names[i], nil, nil)
		})
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%d claims and %d volumes could not be removed", claims.count(""), volumes.count(""))
}
