package script

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type connectionKey struct{}
type wireKey struct{}

// wire carries the rule that acts below gRPC from the interceptor to the HTTP handler around it.
type wire struct{ rule *Rule }

// below hands the rule to the HTTP handler; the error returned is never seen by the caller.
func below(ctx context.Context, rule *Rule) error {
	handle, ok := ctx.Value(wireKey{}).(*wire)
	if !ok {
		return status.Errorf(codes.Internal, "rule %s acts below gRPC, which this server cannot do", rule.Name)
	}
	handle.rule = rule
	return status.Error(codes.Aborted, "replaced by rule "+rule.Name)
}

// Serve serves a gRPC server on a listener until it fails: through gRPC's own transport, or, if the engine may act
// below gRPC, through Go's HTTP/2 server, which allows to abort single streams.
func (e *Engine) Serve(listener net.Listener, server *grpc.Server) error {
	if !e.wire {
		return server.Serve(listener)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	web := &http.Server{
		Protocols: protocols,
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: 1000},
		Handler:   around(server),
		// Aborted streams and second headers are what the rules ask for.
		ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, connection net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, connection)
		},
	}
	return web.Serve(listener)
}

// around runs the gRPC server and afterwards does what a rule asked for below gRPC.
func around(server http.Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		handle := &wire{}
		guarded := &gate{ResponseWriter: writer, wire: handle, dropped: http.Header{}}
		server.ServeHTTP(guarded, request.WithContext(context.WithValue(request.Context(), wireKey{}, handle)))
		if handle.rule == nil {
			return
		}
		switch rule := handle.rule; rule.Answer {
		case Reset:
			panic(http.ErrAbortHandler)
		case Close:
			if connection, ok := request.Context().Value(connectionKey{}).(net.Conn); ok {
				_ = connection.Close()
			}
		case HTTP:
			writer.Header().Set("Content-Type", "text/plain")
			writer.WriteHeader(int(rule.Code))
			_, _ = writer.Write([]byte(rule.Message))
		case Error:
			header := writer.Header()
			header.Set("Content-Type", "application/grpc")
			header.Set(http.TrailerPrefix+"Grpc-Status", fmt.Sprint(uint32(rule.Code)))
			header.Set(http.TrailerPrefix+"Grpc-Message", percentEncoded(rule.MessageBytes))
			writer.WriteHeader(http.StatusOK)
			// Trailers named late get lost if the headers end the stream.
			_ = http.NewResponseController(writer).Flush()
		default:
			writer.Header().Set("Content-Type", "application/grpc")
			writer.WriteHeader(http.StatusOK)
		}
	})
}

// gate lets gRPC's answer through until a rule has taken over the stream.
type gate struct {
	http.ResponseWriter
	wire    *wire
	dropped http.Header
}

// Header gives away a scratch header once the answer is no longer gRPC's.
func (g *gate) Header() http.Header {
	if g.wire.rule != nil {
		return g.dropped
	}
	return g.ResponseWriter.Header()
}

// WriteHeader passes the status on, or drops it.
func (g *gate) WriteHeader(code int) {
	if g.wire.rule == nil {
		g.ResponseWriter.WriteHeader(code)
	}
}

// Write passes bytes on, or drops them.
func (g *gate) Write(bytes []byte) (int, error) {
	if g.wire.rule != nil {
		return len(bytes), nil
	}
	return g.ResponseWriter.Write(bytes)
}

// Flush is what gRPC demands of a writer.
func (g *gate) Flush() {
	if flusher, ok := g.ResponseWriter.(http.Flusher); ok && g.wire.rule == nil {
		flusher.Flush()
	}
}

// percentEncoded writes a status message as gRPC does, without correcting what is not UTF-8.
func percentEncoded(text []byte) string {
	var out strings.Builder
	for _, b := range text {
		if b < ' ' || b > '~' || b == '%' {
			fmt.Fprintf(&out, "%%%02X", b)
		} else {
			out.WriteByte(b)
		}
	}
	return out.String()
}
