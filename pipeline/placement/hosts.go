package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Unknown are the slots of a host whose line says none: as many as it has processors.
const Unknown = -1

// MaxSlots bounds the slots of a host.
const MaxSlots = 4096

// maxText bounds the name of a host and each label, in bytes.
const maxText = 256

// ParseHosts reads a list of hosts, one a line: its name, then slots=N and labels KEY=VALUE in any order. Commas may stand for line ends, and #
// begins a comment. Such a file also suits mpirun.
func ParseHosts(text string) (hosts []Host, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		for item := range strings.SplitSeq(line, ",") {
			fields := strings.Fields(item)
			if len(fields) == 0 {
				continue
			}
			h, err := parseHost(fields)
			if err == nil && slices.ContainsFunc(hosts, func(o Host) bool { return o.Name == h.Name }) {
				err = fmt.Errorf("host %q is there twice", h.Name)
			}
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			hosts = append(hosts, h)
		}
	}
	return hosts, nil
}

func parseHost(fields []string) (Host, error) {
	h := Host{Name: fields[0], Slots: Unknown, Labels: map[string]string{}}
	if strings.Contains(h.Name, "=") || len(h.Name) > maxText {
		return h, fmt.Errorf("%.40q is no name of a host: write NAME slots=8 gpu=h100", h.Name)
	}
	for _, field := range fields[1:] {
		if slots, ok := strings.CutPrefix(field, "slots="); ok {
			n, err := strconv.Atoi(slots)
			if err != nil || n < 0 || n > MaxSlots {
				return h, fmt.Errorf("%q of host %q: want a number from 0 to %d", field, h.Name, MaxSlots)
			}
			h.Slots = n
			continue
		}
		if err := AddLabel(h.Labels, field); err != nil {
			return h, fmt.Errorf("host %q: %w", h.Name, err)
		}
	}
	return h, nil
}

// AddLabel puts KEY=VALUE into labels.
func AddLabel(labels map[string]string, text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" || value == "" || len(text) > maxText || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f || c == ',' }) {
		return fmt.Errorf("%.40q is no label: write KEY=VALUE, such as gpu=h100", text)
	}
	if was, taken := labels[key]; taken {
		return fmt.Errorf("the label %s is there twice: %s and %s", key, was, value)
	}
	labels[key] = value
	return nil
}
