package graph

import (
	"cmp"
	"net"
	"net/url"
	"reflect"
	"runtime"
	"time"
)

// Cluster is the [cluster] table: how other machines join the run. It is read when the run begins.
type Cluster struct {
	Listen   string        `toml:"listen,omitempty" doc:"Where other machines join, as rlhost train --listen has it; empty = nowhere." range:"HOST:PORT"`
	Hosts    int           `toml:"hosts" doc:"Machines that may have joined at a time." range:"1 to 1024"`
	WaitFor  int           `toml:"wait_for" doc:"Machines that must have joined before the run begins." range:"0 to hosts" unit:"machines"`
	Slots    int           `toml:"slots" doc:"Instances with a place, or pairs of a group, that the run's own machine may have; -1 = one for each processor." range:"-1 to 4096"`
	Shares   []string      `toml:"shares,omitempty" doc:"Servers and channels on the run's own machine that programs on the others may use, next to the run's components and channels." range:"names" default:"none"`
	TokenFor time.Duration `toml:"token_for,omitempty" doc:"How long a token lets new machines join; 0 = as long as the run." range:"0, or 1m or more" default:"0"`
	TLSCert  string        `toml:"tls_cert,omitempty" doc:"File of the certificate that the run shows, with its chain; empty = one that it makes." default:"none"`
	TLSKey   string        `toml:"tls_key,omitempty" doc:"File of that certificate's key." default:"none"`
	Servers  []string      `toml:"servers,omitempty" doc:"Servers of a NATS cluster of yours, where the run meets its machines, in place of listening." range:"URLs of nats or tls" default:"none"`
	Creds    string        `toml:"creds,omitempty" doc:"File of credentials for those servers." default:"none"`
	TLSCA    string        `toml:"tls_ca,omitempty" doc:"File of the authority that has signed those servers' certificate; empty = the machine's own." default:"none"`
}

// DefaultCluster returns a table with the defaults of [cluster].
func DefaultCluster() Cluster { return Cluster{Hosts: 64, Slots: ownProcessors} }

// ownProcessors stands for as many slots as the machine has processors.
const ownProcessors = -1

// OwnSlots returns how many instances with a place the run's own machine may have.
func (c *Cluster) OwnSlots() int {
	if c.Slots == ownProcessors {
		return runtime.GOMAXPROCS(0)
	}
	return c.Slots
}

// channelKind is the kind of components that serve a channel, by the key name of their table or by their own name.
const channelKind = "channel"

// Channels returns the names of the channels that components serve.
func (g *Graph) Channels() (list []string) {
	for i := range g.Components {
		if x := &g.Components[i]; x.Kind == channelKind {
			name, _ := x.table.at("name").text()
			list = append(list, cmp.Or(name, x.Name))
		}
	}
	return list
}

// Bounds of [cluster].
const (
	maxHosts    = 1024
	maxSlots    = 4096
	minTokenFor = time.Minute
)

// clusterTable reads [cluster].
func (r *placeReader) clusterTable() {
	k := r.check
	c := DefaultCluster()
	n := k.root.at("cluster")
	d := &tableDecoder{report: &k.Report, n: n, path: "cluster"}
	d.decode(&c) // errors have been noted
	k.graph.Cluster = c
	k.atLeast(n, "hosts", c.Hosts, 1)
	k.atMost(n, "hosts", c.Hosts, maxHosts)
	k.atLeast(n, "wait_for", c.WaitFor, 0)
	k.atMost(n, "wait_for", c.WaitFor, max(c.Hosts, 0))
	k.atLeast(n, "slots", c.Slots, ownProcessors)
	k.atMost(n, "slots", c.Slots, maxSlots)
	if at := n.at("listen"); at != nil && c.Listen != "" {
		if _, _, err := net.SplitHostPort(c.Listen); err != nil {
			k.Add("E005", at.val, `write HOST:PORT, such as "0.0.0.0:4222"`, "`listen` is %q", c.Listen)
		}
	}
	if at := n.at("token_for"); at != nil && c.TokenFor > 0 && c.TokenFor < minTokenFor {
		k.Add("E005", at.val, `write "24h", or leave it out`, "`token_for` is %v, must be %v or more", c.TokenFor, minTokenFor)
	}
	checkServers(&k.Report, n, &c)
	for one, other := range map[string]string{"tls_cert": "tls_key", "tls_key": "tls_cert"} {
		if at := n.at(one); at != nil && n.at(other) == nil {
			k.Add("E004", at.key, "a certificate and its key go together", "`%s` is missing in [cluster]", other)
		}
	}
}

// ServerHelp says how a server of a cluster is written.
const ServerHelp = `write "nats://HOST:PORT" or "tls://HOST:PORT"; what a server asks for goes into a file, which creds names`

// IsServer reports whether a text is the URL of a server of a cluster.
func IsServer(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "nats" || u.Scheme == "tls") && u.Host != "" && u.User == nil
}

// checkServers checks the keys about a cluster of the user's.
func checkServers(r *Report, n *node, c *Cluster) {
	at := n.at("servers")
	for _, server := range c.Servers {
		if !IsServer(server) {
			r.Add("E005", at.val, ServerHelp, "`servers` has %q", server)
		}
	}
	if at != nil && n.at("listen") != nil {
		r.Add("E005", at.key, "leave one of them out: a run listens, or meets its machines at servers", "`servers` and `listen` are both there")
	}
	for _, name := range []string{"creds", "tls_ca"} {
		if key := n.at(name); key != nil && len(c.Servers) == 0 {
			r.Add("E004", key.key, `servers = ["nats://HOST:PORT"] of a cluster of yours goes with it`, "`servers` is missing in [cluster]")
		}
	}
}

// clusterLines are the keys of [cluster], none where the file says nothing.
func (g *Graph) clusterLines() []keyValue {
	if reflect.DeepEqual(g.Cluster, DefaultCluster()) {
		return nil
	}
	return encodeStruct(reflect.ValueOf(g.Cluster))
}
