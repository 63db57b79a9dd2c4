package script

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"csi-provisioner.dev/e2e/tools/calllog"
)

// counting is a driver that only counts how often it really worked.
type counting struct {
	csi.UnimplementedControllerServer
	worked int
}

func (c *counting) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	c.worked++
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: "id-" + r.Name, CapacityBytes: 7}}, nil
}

type world struct {
	client csi.ControllerClient
	driver *counting
	engine *Engine
	log    *calllog.Log
}

func newWorld(t *testing.T, path string, wire bool, rules string) *world {
	t.Helper()
	log, err := calllog.Open("", true, true)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{driver: &counting{}, engine: NewEngine(log, path, wire), log: log}
	if rules != "" {
		if err := w.engine.Set([]byte(rules)); err != nil {
			t.Fatal(err)
		}
	}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(w.engine.Intercept))
	csi.RegisterControllerServer(server, w.driver)
	go func() { _ = w.engine.Serve(listener, server) }()
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close(); listener.Close() })
	w.client = csi.NewControllerClient(connection)
	return w
}

func (w *world) create(name string) (*csi.Volume, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, err := w.client.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: name, Secrets: map[string]string{"k": "geheim"}})
	return reply.GetVolume(), err
}

func TestAnswersOnTheWire(t *testing.T) {
	for _, c := range []struct {
		name, rule, message string
		code                codes.Code
		worked              int
	}{
		{"error without work", `{method: CreateVolume, code: Unavailable, message: pool full}`, "pool full", codes.Unavailable, 0},
		{"error after work", `{method: CreateVolume, code: DEADLINE_EXCEEDED, work: true}`, "", codes.DeadlineExceeded, 1},
		{"unknown code", `{method: "*", code: 42}`, "", codes.Code(42), 0},
		{"reset", `{method: CreateVolume, answer: reset}`, "RST_STREAM", codes.Internal, 0},
		{"reset after headers and work", `{method: CreateVolume, answer: reset, headers: true, work: true}`, "RST_STREAM", codes.Internal, 1},
		{"closed connection", `{method: CreateVolume, answer: close}`, "", codes.Unavailable, 0},
		{"no status", `{method: CreateVolume, answer: no-status}`, "", codes.Internal, 0},
		{"no status after headers", `{method: CreateVolume, answer: no-status, headers: true}`, "", codes.Internal, 0},
		{"plain HTTP", `{method: CreateVolume, answer: http, code: 503, message: sorry}`, "503", codes.Unavailable, 0},
		{"message that is not UTF-8", `{method: CreateVolume, code: 13, messageBytes: Y2Fm6Q==}`, "caf\xe9", codes.Internal, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "", true, "["+c.rule+"]")
			_, err := w.create("a")
			if got := status.Code(err); got != c.code && !(c.code == codes.Internal && got == codes.Unknown) {
				t.Errorf("code %v, want %v (%v)", got, c.code, err)
			}
			if !strings.Contains(status.Convert(err).Message(), c.message) {
				t.Errorf("message %q lacks %q", status.Convert(err).Message(), c.message)
			}
			if w.driver.worked != c.worked {
				t.Errorf("worked %d times, want %d", w.driver.worked, c.worked)
			}
		})
	}
}

func TestRepliesCanBeChanged(t *testing.T) {
	for _, wire := range []bool{false, true} {
		w := newWorld(t, "", wire, `[{method: CreateVolume, key: ^none$, merge: {volume: null}},
			{method: CreateVolume, key: ^size$, merge: {volume: {capacityBytes: "9"}}},
			{method: CreateVolume, key: ^big$, padBytes: 100}]`)
		if v, err := w.create("none"); v != nil || err != nil {
			t.Errorf("volume %v, error %v", v, err)
		}
		if v, _ := w.create("size"); v.GetCapacityBytes() != 9 || v.GetVolumeId() != "id-size" {
			t.Errorf("volume %v", v)
		}
		if v, _ := w.create("big"); len(v.GetVolumeContext()["pad"]) != 100 {
			t.Errorf("volume %v", v)
		}
	}
}

func TestCountersChooseCalls(t *testing.T) {
	w := newWorld(t, "", false, `[{method: CreateVolume, skip: 1, count: 2, code: 8}]`)
	got := ""
	for range 5 {
		_, err := w.create("a")
		got += status.Code(err).String() + " "
	}
	if got != "OK ResourceExhausted ResourceExhausted OK OK " {
		t.Error(got)
	}
}

func TestFileIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules")
	w := newWorld(t, path, false, "")
	if _, err := w.create("a"); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte(`[{"method":"CreateVolume","code":"Aborted"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.create("a"); status.Code(err) != codes.Aborted {
		t.Error(err)
	}
}

func TestFaultsBelowGRPCAreRefusedWithoutTheServerForThem(t *testing.T) {
	if _, err := Parse([]byte(`[{method: CreateVolume, answer: reset}]`), false); err == nil {
		t.Error("accepted")
	}
	if _, err := Parse([]byte(`[{method: CreateVolume, anser: reset}]`), true); err == nil {
		t.Error("a misspelt field was accepted")
	}
}

func TestLogTellsRequestReplyAndRule(t *testing.T) {
	w := newWorld(t, "", false, `[{name: once, method: CreateVolume, count: 1, code: 14}]`)
	_, _ = w.create("a")
	_, _ = w.create("a")
	text, _ := json.Marshal(w.log.Calls("CreateVolume"))
	for _, wanted := range []string{`"rule":"once"`, `"code":14`, `"outcome":"reply"`, `"capacityBytes":"7"`, `"key":"a"`, `"secrets":{"k":"hidden"}`} {
		if !strings.Contains(string(text), wanted) {
			t.Errorf("%s lacks %s", text, wanted)
		}
	}
	if strings.Contains(string(text), "geheim") {
		t.Error("a secret got into the log")
	}
}
