// Package script makes a CSI driver misbehave on demand: a list of rules says which call fails in which way.
//
// Rules are JSON or YAML, see [Rule]. The first rule that fits a call and is not used up takes part in it; the parts
// of a rule are independent of each other: wait, do the work or not, wait again, send headers or not, answer.
package script

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"sigs.k8s.io/yaml"
)

// The answers a rule can give.
const (
	// Reply is what the driver really answers, after Merge and PadBytes.
	Reply = "reply"
	// Error is a gRPC status with Code and Message.
	Error = "error"
	// Exit ends the driver's process without an answer.
	Exit = "exit"
	// Reset aborts the stream (RST_STREAM); the connection lives on.
	Reset = "reset"
	// Close shuts the connection.
	Close = "close"
	// NoStatus ends the stream properly, but without any grpc-status.
	NoStatus = "no-status"
	// HTTP answers with a plain HTTP error, status Code, as a proxy would.
	HTTP = "http"
)

// Rule says what happens to some calls.
type Rule struct {
	// Name shows up in the call log; the rule's number if empty.
	Name string `json:"name,omitempty"`
	// Method is a bare method name such as CreateVolume, or "*".
	Method string `json:"method"`
	// Key is a regular expression on the name (creations) or identifier in the request; empty fits all.
	Key string `json:"key,omitempty"`
	// Skip lets that many fitting calls pass first.
	Skip int `json:"skip,omitempty"`
	// Count is how many calls the rule then takes part in; 0 means all.
	Count int `json:"count,omitempty"`
	// Before is a wait before anything else. Like a real driver, no wait here ends when the caller gives up.
	Before Duration `json:"before,omitempty"`
	// Work tells whether the driver does what it was asked; by default only if it also replies.
	Work *bool `json:"work,omitempty"`
	// After is a wait between work and answer.
	After Duration `json:"after,omitempty"`
	// Headers sends the response headers ahead of the answer.
	Headers bool `json:"headers,omitempty"`
	// Answer is one of the constants above; Error if only a Code is given.
	Answer string `json:"answer,omitempty"`
	// Code is a gRPC code by number (unknown ones too) or name, for HTTP its status.
	Code Code `json:"code,omitempty"`
	// Message is the status text.
	Message string `json:"message,omitempty"`
	// MessageBytes (base64) is a status text that need not be UTF-8; it goes percent-encoded as it is.
	MessageBytes []byte `json:"messageBytes,omitempty"`
	// Merge is a JSON merge patch on the reply in protobuf JSON: {"volume": {"capacityBytes": "1"}}, {"volume": null}.
	Merge json.RawMessage `json:"merge,omitempty"`
	// PadBytes adds that much text to the volume context of the reply.
	PadBytes int `json:"padBytes,omitempty"`

	// Seen and Fired count fitting calls and those acted upon. Output only.
	Seen  int `json:"seen"`
	Fired int `json:"fired"`

	key *regexp.Regexp
}

// Duration is a time.Duration in Go notation.
type Duration time.Duration

// UnmarshalJSON reads "1.5s".
func (d *Duration) UnmarshalJSON(text []byte) error {
	var word string
	if err := json.Unmarshal(text, &word); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(word)
	*d = Duration(parsed)
	return err
}

// MarshalJSON writes "1.5s".
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// Code is a gRPC code that may be written as a name (Unavailable, UNAVAILABLE) or as any number.
type Code uint32

// UnmarshalJSON reads a number or a name.
func (c *Code) UnmarshalJSON(text []byte) error {
	var word string
	if json.Unmarshal(text, &word) != nil {
		var number uint32
		if err := json.Unmarshal(text, &number); err != nil {
			return fmt.Errorf("code %s is neither a number nor a name", text)
		}
		*c = Code(number)
		return nil
	}
	plain := strings.ReplaceAll(word, "_", "")
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		if strings.EqualFold(code.String(), plain) {
			*c = Code(code)
			return nil
		}
	}
	return fmt.Errorf("no gRPC code is named %q", word)
}

// Parse reads a list of rules. The faults below gRPC need wire, a server built by [Engine.Serve] with faults.
func Parse(text []byte, wire bool) ([]*Rule, error) {
	var rules []*Rule
	if err := yaml.UnmarshalStrict(text, &rules); err != nil {
		return nil, err
	}
	for number, rule := range rules {
		if rule == nil {
			return nil, fmt.Errorf("rule %d is empty", number)
		}
		if err := rule.complete(number, wire); err != nil {
			return nil, fmt.Errorf("rule %d: %w", number, err)
		}
	}
	return rules, nil
}

// complete fills in defaults and refuses what cannot be done.
func (r *Rule) complete(number int, wire bool) error {
	if r.Name == "" {
		r.Name = fmt.Sprint(number)
	}
	if r.Method == "" {
		return fmt.Errorf("method is missing (\"*\" fits all)")
	}
	if r.Answer == "" {
		r.Answer = Reply
		if r.Code != 0 {
			r.Answer = Error
		}
	}
	if r.Work == nil {
		work := r.Answer == Reply
		r.Work = &work
	}
	var err error
	if r.key, err = regexp.Compile(r.Key); err != nil {
		return err
	}
	needsWire := len(r.MessageBytes) > 0
	switch r.Answer {
	case Reply:
		if !*r.Work {
			return fmt.Errorf("a reply needs the work to be done")
		}
	case Error, HTTP:
		if r.Code == 0 {
			return fmt.Errorf("answer %s needs a code", r.Answer)
		}
		needsWire = needsWire || r.Answer == HTTP
	case Exit:
	case Reset, Close, NoStatus:
		needsWire = true
	default:
		return fmt.Errorf("unknown answer %q", r.Answer)
	}
	if needsWire && !wire {
		return fmt.Errorf("answer %s acts below gRPC, which this server cannot do", r.Answer)
	}
	return nil
}

// fits tells whether the rule is about this call, whatever its counters say.
func (r *Rule) fits(method, key string) bool {
	return (r.Method == "*" || r.Method == method) && r.key.MatchString(key)
}
