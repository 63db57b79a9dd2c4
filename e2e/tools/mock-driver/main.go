// Mock-driver-go serves Kubernetes' own e2e mock driver on a socket, with a call log and scripted faults around it.
//
// It is nobody's of this project: what a sidecar does right with it cannot be right by a shared misunderstanding.
// The faults are the rules of package script that stay within gRPC.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/driver"
	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/mock/service"

	"csi-provisioner.dev/e2e/tools/calllog"
	"csi-provisioner.dev/e2e/tools/script"
)

func main() {
	var config service.Config
	flag.StringVar(&config.DriverName, "name", "mock.csi.test", "driver name; also the node's ID")
	flag.BoolVar(&config.DisableAttach, "disable-attach", false, "no PUBLISH_UNPUBLISH_VOLUME capability")
	flag.BoolVar(&config.DisableControllerExpansion, "disable-expansion", false, "no EXPAND_VOLUME capability")
	flag.BoolVar(&config.DisableOnlineExpansion, "disable-online-expansion", false, "offline expansion only")
	flag.BoolVar(&config.NodeExpansionRequired, "node-expansion-required", false, "expansions have a node part")
	flag.BoolVar(&config.EnableTopology, "topology", false, "topology with the driver's one fixed segment")
	flag.Int64Var(&config.AttachLimit, "attach-limit", 0, "volumes per node; 0 means no limit")
	socket := flag.String("socket", "", "path of the unix socket (required)")
	logPath := flag.String("log", "/dev/stdout", "file for the call log, one JSON line per call")
	hideSecrets := flag.Bool("hide-secrets", false, "write no secret values into the call log")
	scriptPath := flag.String("script", "", "file with fault rules (JSON or YAML), read again when it changes")
	flag.Parse()
	if err := run(config, *socket, *logPath, *hideSecrets, *scriptPath); err != nil {
		fmt.Fprintln(os.Stderr, "mock-driver-go:", err)
		os.Exit(1)
	}
}

func run(config service.Config, socket, logPath string, hideSecrets bool, scriptPath string) error {
	if socket == "" {
		return fmt.Errorf("--socket is missing")
	}
	log, err := calllog.Open(logPath, hideSecrets, false)
	if err != nil {
		return err
	}
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	mock := service.New(config)
	server := driver.NewCSIDriver(&driver.CSIDriverServers{Controller: mock, Identity: mock, Node: mock})
	if err := server.Start(listener, script.NewEngine(log, scriptPath, false).Intercept); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
	server.Stop()
	return nil
}
