// Package calllog records CSI calls, one JSON line per call, so that tests can count them and compare requests.
//
// A nil *Log is valid and records nothing: a driver under load pays for the log only when it was asked for.
package calllog

import (
	"bytes"
	"encoding/json"
	"os"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Hidden replaces every secret value when secrets are hidden.
const Hidden = "hidden"

// Call is one recorded call. A call still running has no end, no code and no outcome.
type Call struct {
	// Method is the bare name, such as CreateVolume.
	Method string `json:"method"`
	// Key is the volume or snapshot name of a creation, else the identifier the call is about.
	Key string `json:"key,omitempty"`
	// Request is the protobuf JSON form, compact, keys of maps sorted: equal requests give equal text.
	Request json.RawMessage `json:"request"`
	// Reply is absent when the caller got an error or nothing.
	Reply json.RawMessage `json:"reply,omitempty"`
	// Code is the number of the gRPC status.
	Code *uint32 `json:"code,omitempty"`
	// Error is the status message.
	Error string `json:"error,omitempty"`
	// Outcome tells what the caller got: reply, error, or the fault of the rule (exit, reset, close, no-status, http).
	Outcome string `json:"outcome,omitempty"`
	// Rule names the script rule that took part.
	Rule  string     `json:"rule,omitempty"`
	Start time.Time  `json:"start"`
	End   *time.Time `json:"end,omitempty"`
}

// Log appends calls to a file, keeps them in memory, or both.
type Log struct {
	mu          sync.Mutex
	file        *os.File
	hideSecrets bool
	keep        bool
	calls       []*Call
}

// Open returns a log that appends to path (none if empty) and remembers all calls if keep is set.
// With neither it returns nil, the log that costs nothing.
func Open(path string, hideSecrets, keep bool) (*Log, error) {
	if path == "" && !keep {
		return nil, nil
	}
	log := &Log{hideSecrets: hideSecrets, keep: keep}
	if path != "" {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		log.file = file
	}
	return log, nil
}

// Begin opens a record.
func (l *Log) Begin(method, key string, request any) *Call {
	if l == nil {
		return nil
	}
	call := &Call{Method: method, Key: key, Request: l.render(request), Start: time.Now().UTC()}
	if l.keep {
		l.mu.Lock()
		l.calls = append(l.calls, call)
		l.mu.Unlock()
	}
	return call
}

// End closes a record and writes its line at once, so that a driver killed right afterwards has it on disk.
func (l *Log) End(call *Call, rule, outcome string, reply any, err error) {
	if l == nil {
		return
	}
	var rendered json.RawMessage
	if outcome == "reply" {
		rendered = l.render(reply)
	}
	s := status.Convert(err)
	code, now := uint32(s.Code()), time.Now().UTC()
	l.mu.Lock()
	defer l.mu.Unlock()
	call.Rule, call.Outcome, call.Reply, call.Code, call.Error, call.End = rule, outcome, rendered, &code, s.Message(), &now
	if l.file == nil {
		return
	}
	if line, err := json.Marshal(call); err == nil {
		_, _ = l.file.Write(append(line, '\n'))
	}
}

// Calls returns the remembered calls of a method (all if empty), oldest first, running ones included.
func (l *Log) Calls(method string) []Call {
	found := []Call{}
	if l == nil {
		return found
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, call := range l.calls {
		if method == "" || method == call.Method {
			found = append(found, *call)
		}
	}
	return found
}

func (l *Log) render(value any) json.RawMessage {
	message, ok := value.(proto.Message)
	if !ok || message == nil {
		return json.RawMessage("null")
	}
	if l.hideSecrets {
		message = withoutSecrets(message)
	}
	text, err := protojson.Marshal(message)
	if err != nil {
		text, _ = json.Marshal("cannot be rendered: " + err.Error())
	}
	// protojson varies its white space on purpose.
	var compact bytes.Buffer
	if json.Compact(&compact, text) != nil {
		return json.RawMessage("null")
	}
	return compact.Bytes()
}

// withoutSecrets returns a copy whose top-level csi_secret maps keep their keys only. CSI has secrets nowhere deeper.
func withoutSecrets(message proto.Message) proto.Message {
	message = proto.Clone(message)
	reflected := message.ProtoReflect()
	reflected.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		options, ok := field.Options().(*descriptorpb.FieldOptions)
		if !ok || !field.IsMap() || !proto.HasExtension(options, csi.E_CsiSecret) {
			return true
		}
		secrets := value.Map()
		secrets.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
			secrets.Set(key, protoreflect.ValueOfString(Hidden))
			return true
		})
		return true
	})
	return message
}
