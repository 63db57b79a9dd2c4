package script

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"csi-provisioner.dev/e2e/tools/calllog"
	"github.com/container-storage-interface/spec/lib/go/csi"
)

// ExitCode is the status of a driver that a rule or the control endpoint made exit.
const ExitCode = 3

// Engine applies rules to calls and records the calls.
type Engine struct {
	log  *calllog.Log
	wire bool

	mu    sync.Mutex
	rules []*Rule
	path  string
	stamp string
}

// NewEngine returns an engine without rules. If path is not empty, the rules are read from that file, and again
// whenever it changes (counters then start anew); a missing file means no rules.
func NewEngine(log *calllog.Log, path string, wire bool) *Engine {
	return &Engine{log: log, path: path, wire: wire}
}

// Set replaces all rules.
func (e *Engine) Set(text []byte) error {
	rules, err := Parse(text, e.wire)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	// What the file says now must not win over what was just set; its next change does.
	e.rules, e.stamp = rules, e.stampNow()
	return nil
}

// Rules returns a copy of the rules with their counters.
func (e *Engine) Rules() []Rule {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reload()
	rules := []Rule{}
	for _, rule := range e.rules {
		rules = append(rules, *rule)
	}
	return rules
}

// Intercept is the gRPC interceptor.
func (e *Engine) Intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, work grpc.UnaryHandler) (any, error) {
	method, key := path.Base(info.FullMethod), keyOf(request)
	call := e.log.Begin(method, key, request)
	rule := e.take(method, key)
	if rule == nil {
		reply, err := work(ctx, request)
		e.log.End(call, "", outcomeOf(err), reply, err)
		return reply, err
	}
	time.Sleep(time.Duration(rule.Before))
	var reply any
	var err error
	if *rule.Work {
		reply, err = work(ctx, request)
	}
	time.Sleep(time.Duration(rule.After))
	if rule.Headers {
		_ = grpc.SendHeader(ctx, metadata.Pairs("e2e-rule", rule.Name))
		// Nothing tells when the headers have left.
		time.Sleep(100 * time.Millisecond)
	}
	switch rule.Answer {
	case Reply:
		if err == nil {
			reply, err = rule.change(reply)
		}
	case Error:
		err = status.Error(codes.Code(rule.Code), rule.Message)
		if len(rule.MessageBytes) > 0 {
			err = below(ctx, rule)
		}
	case Exit:
		e.log.End(call, rule.Name, rule.Answer, nil, nil)
		os.Exit(ExitCode)
	default:
		err = below(ctx, rule)
	}
	outcome := rule.Answer
	if outcome == Reply {
		outcome = outcomeOf(err)
	}
	e.log.End(call, rule.Name, outcome, reply, err)
	return reply, err
}

// take returns the rule for a call, if any, and counts.
func (e *Engine) take(method, key string) *Rule {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reload()
	for _, rule := range e.rules {
		if !rule.fits(method, key) || (rule.Count > 0 && rule.Fired >= rule.Count) {
			continue
		}
		rule.Seen++
		if rule.Seen <= rule.Skip {
			continue
		}
		rule.Fired++
		return rule
	}
	return nil
}

// reload reads the script file if it has changed. A faulty file leaves no rules and is told once on stderr.
func (e *Engine) reload() {
	stamp := e.stampNow()
	if e.path == "" || stamp == e.stamp {
		return
	}
	e.stamp, e.rules = stamp, nil
	text, err := os.ReadFile(e.path)
	if os.IsNotExist(err) {
		return
	}
	if err == nil {
		e.rules, err = Parse(text, e.wire)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "script %s: %v\n", e.path, err)
	}
}

// stampNow identifies the state of the script file.
func (e *Engine) stampNow() string {
	info, err := os.Stat(e.path)
	if err != nil {
		return "absent"
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
}

// change applies Merge and PadBytes to a reply.
func (r *Rule) change(reply any) (any, error) {
	message, ok := reply.(proto.Message)
	if !ok {
		return reply, nil
	}
	if len(r.Merge) > 0 {
		text, err := protojson.Marshal(message)
		if err != nil {
			return nil, err
		}
		if text, err = jsonpatch.MergePatch(text, r.Merge); err != nil {
			return nil, err
		}
		changed := message.ProtoReflect().New().Interface()
		if err := protojson.Unmarshal(text, changed); err != nil {
			return nil, status.Errorf(codes.Internal, "rule %s: merge gives no %T: %v", r.Name, message, err)
		}
		message = changed
	}
	if created, ok := message.(*csi.CreateVolumeResponse); ok && r.PadBytes > 0 && created.Volume != nil {
		volume := proto.Clone(created.Volume).(*csi.Volume)
		if volume.VolumeContext == nil {
			volume.VolumeContext = map[string]string{}
		}
		volume.VolumeContext["pad"] = strings.Repeat("x", r.PadBytes)
		message = &csi.CreateVolumeResponse{Volume: volume}
	}
	return message, nil
}

func outcomeOf(err error) string {
	if err != nil {
		return Error
	}
	return Reply
}

// keyOf returns what a request is about.
func keyOf(request any) string {
	switch r := request.(type) {
	case interface{ GetName() string }:
		return r.GetName()
	case interface{ GetVolumeId() string }:
		return r.GetVolumeId()
	case interface{ GetSnapshotId() string }:
		return r.GetSnapshotId()
	}
	return ""
}
