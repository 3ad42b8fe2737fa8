package ipc

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Manager is the service manager that started this process, such as systemd, as sd_notify(3) describes it. The nil Manager is
// for a process that none started: its methods do nothing.
type Manager struct {
	socket *net.UnixAddr
	// Watchdog is how long it waits for an Alive before it considers this process hung; 0 = for ever.
	Watchdog time.Duration
}

// FindManager returns the manager that this process's environment names, and takes its name out, so that processes that this
// one starts are not taken for it. It is nil where none is named.
func FindManager() (*Manager, error) {
	socket, period, process := os.Getenv("NOTIFY_SOCKET"), os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID")
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if socket == "" {
		return nil, nil
	}
	if socket[0] != '/' && socket[0] != '@' {
		return nil, fmt.Errorf("NOTIFY_SOCKET is %q: want the path of a Unix socket, or @ and the name of one", socket)
	}
	m := &Manager{socket: &net.UnixAddr{Name: socket, Net: "unixgram"}}
	if period == "" || process != "" && process != strconv.Itoa(os.Getpid()) {
		return m, nil
	}
	usec, err := strconv.ParseInt(period, 10, 64)
	if err != nil || usec <= 0 || usec > int64(time.Duration(1<<62)/time.Microsecond) {
		return nil, fmt.Errorf("WATCHDOG_USEC is %q: want microseconds", period)
	}
	m.Watchdog = time.Duration(usec) * time.Microsecond
	return m, nil
}

// Ready reports that this process has started its service. status is one line for people.
func (m *Manager) Ready(status string) error { return m.tell("READY=1", status) }

// Alive says that this process does not hang.
func (m *Manager) Alive(status string) error { return m.tell("WATCHDOG=1", status) }

// Reloading says that the configuration is being read again; Ready ends that.
func (m *Manager) Reloading(status string) error { return m.tell("RELOADING=1", status) }

// Stopping says that this process is about to end.
func (m *Manager) Stopping(status string) error { return m.tell("STOPPING=1", status) }

// sendTime bounds how long a manager that does not read is waited for.
const sendTime = time.Second

// tell sends one datagram.
func (m *Manager) tell(state, status string) error {
	if m == nil {
		return nil
	}
	conn, err := net.DialUnix(m.socket.Net, nil, m.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(state + "\nSTATUS=" + strings.ReplaceAll(status, "\n", " ")))
	return err
}
