// Bench-driver is a fast CSI driver in memory: load for benchmarks, and scripted misbehaviour for tests.
//
// Creation is idempotent by name and deletion by identifier. Nothing is logged or remembered about calls unless
// --log or --control asks for it. With --script or --control the server runs on Go's HTTP/2 stack, so that rules
// can also break single streams; without them on gRPC's own, faster one. See package script for the rules.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"csi-provisioner.dev/e2e/tools/calllog"
	"csi-provisioner.dev/e2e/tools/script"
)

// options are the driver's flags.
type options struct {
	socket, name, node, version string
	delay                       time.Duration
	topology, clone, snapshots  bool
	capacity, publish, modify   bool
	multiWriter                 bool
	capacityBytes               int64
	maximumVolumeSize           int64
	state, log, script, control string
	hideSecrets                 bool
}

func main() {
	var o options
	flag.StringVar(&o.socket, "socket", "", "path of the unix socket (required)")
	flag.StringVar(&o.name, "name", "bench.csi.test", "driver name")
	flag.StringVar(&o.version, "version", "1.0.0", "vendor version")
	flag.StringVar(&o.node, "node", "", "node name: NodeGetInfo works, and volumes without a requirement are put there")
	flag.DurationVar(&o.delay, "delay", 0, "time that CreateVolume and DeleteVolume take")
	flag.BoolVar(&o.topology, "topology", false, "volumes live on one node; key topology.NAME/node")
	flag.BoolVar(&o.clone, "clone", false, "volumes can be cloned")
	flag.BoolVar(&o.snapshots, "snapshots", false, "snapshots; as a source any snapshot ID is accepted")
	flag.BoolVar(&o.capacity, "capacity", false, "GetCapacity")
	flag.Int64Var(&o.capacityBytes, "capacity-bytes", 1<<40, "capacity per node (in all without topology), minus volumes")
	flag.Int64Var(&o.maximumVolumeSize, "maximum-volume-size", 0, "told by GetCapacity; 0 means not told")
	flag.BoolVar(&o.publish, "publish", false, "PUBLISH_UNPUBLISH_VOLUME capability")
	flag.BoolVar(&o.modify, "modify", false, "MODIFY_VOLUME capability")
	flag.BoolVar(&o.multiWriter, "multi-writer", false, "SINGLE_NODE_MULTI_WRITER capability")
	flag.StringVar(&o.state, "state", "", "journal of the volumes: a driver killed and started again knows them")
	flag.StringVar(&o.log, "log", "", "file for the call log, one JSON line per call")
	flag.BoolVar(&o.hideSecrets, "hide-secrets", false, "write no secret values into the call log")
	flag.StringVar(&o.script, "script", "", "file with fault rules (JSON or YAML), read again when it changes")
	flag.StringVar(&o.control, "control", "", "address of the control endpoint: 127.0.0.1:PORT or unix:PATH")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-driver:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.socket == "" {
		return fmt.Errorf("--socket is missing")
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	log, err := calllog.Open(o.log, o.hideSecrets, o.control != "")
	if err != nil {
		return err
	}
	volumes, err := openStore(o.state)
	if err != nil {
		return fmt.Errorf("state %s: %w", o.state, err)
	}
	wire := o.script != "" || o.control != ""
	engine := script.NewEngine(log, o.script, wire)
	interceptors := []grpc.ServerOption{}
	if wire || log != nil {
		interceptors = append(interceptors, grpc.UnaryInterceptor(engine.Intercept))
	}
	server := grpc.NewServer(interceptors...)
	served := &driver{options: o, volumes: volumes}
	csi.RegisterIdentityServer(server, served)
	csi.RegisterControllerServer(server, served)
	if o.node != "" {
		csi.RegisterNodeServer(server, served)
	}
	if o.control != "" {
		if err := serveControl(o.control, control{volumes: volumes, log: log, engine: engine}); err != nil {
			return err
		}
	}
	_ = os.Remove(o.socket)
	listener, err := net.Listen("unix", o.socket)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-stop
		_ = os.Remove(o.socket)
		os.Exit(0)
	}()
	return engine.Serve(listener, server)
}
