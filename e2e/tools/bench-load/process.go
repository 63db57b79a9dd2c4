package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond is the unit of CPU times in /proc; Linux shows 100 to programs on every architecture Go runs on.
const ticksPerSecond = 100

// usage is what a process has taken so far.
type usage struct {
	CPUSeconds float64 `json:"cpu_s"`
	RSSMiB     float64 `json:"rss_mib"`
	PeakMiB    float64 `json:"peak_mib"`
	Threads    int     `json:"threads"`
}

var memoryLine = regexp.MustCompile(`(?m)^(VmRSS|VmHWM|Threads):\s+(\d+)`)

// usageOf reads /proc; all zero if the process is gone.
func usageOf(pid int) usage {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	var found usage
	// The program's name, in brackets, may contain blanks.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) > 12 {
		user, _ := strconv.ParseFloat(fields[11], 64)
		system, _ := strconv.ParseFloat(fields[12], 64)
		found.CPUSeconds = (user + system) / ticksPerSecond
	}
	for _, line := range memoryLine.FindAllStringSubmatch(string(status), -1) {
		number, _ := strconv.Atoi(line[2])
		switch line[1] {
		case "VmRSS":
			found.RSSMiB = float64(number) / 1024
		case "VmHWM":
			found.PeakMiB = float64(number) / 1024
		case "Threads":
			found.Threads = number
		}
	}
	return found
}

// process is a started program. Its output goes to a file.
type process struct {
	command *exec.Cmd
	started time.Time
	ended   chan struct{}
}

// start runs a program with its output in a file.
func start(log string, command []string) (*process, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &process{command: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = file, file
	// The Go sidecar prefers KUBECONFIG to its own flag: an administrator's would hide missing rights and requests.
	p.command.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "KUBECONFIG=") })
	p.command.Env = append(p.command.Env, "NAMESPACE=default")
	// Whatever kills the load must not leave the program behind.
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.started = time.Now()
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.command.Wait(); close(p.ended) }()
	return p, nil
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) usage() usage { return usageOf(p.command.Process.Pid) }

// stop asks the process to end, and kills it after a while. It returns how long that took, and the exact totals.
func (p *process) stop(patience time.Duration) (time.Duration, usage) {
	begin := time.Now()
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.command.Process.Kill()
		<-p.ended
	}
	total := usage{}
	if state, ok := p.command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		cpu := time.Duration(state.Utime.Nano() + state.Stime.Nano())
		// The peak is read from /proc before the end: Maxrss would include what this process was before exec.
		total = usage{CPUSeconds: cpu.Seconds()}
	}
	return time.Since(begin), total
}

// freePort returns a port that nobody listens on right now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// waitFor polls until a condition holds; false if it did not in time or the process ended.
func (p *process) waitFor(limit time.Duration, condition func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return true
		}
		if !p.alive() {
			return false
		}
	}
	return false
}

// scrapable tells whether the metrics page answers.
func scrapable(port int) bool {
	client := http.Client{Timeout: time.Second}
	answer, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
