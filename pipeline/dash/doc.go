// Package dash serves a page about runs: their curves, components, episodes, evaluations, changes and logs, live, and buttons that do what
// rlhost's commands do.
//
//	s, err := dash.New(dash.Options{Dir: "runs", Words: []string{"cartpole/3"}})
//	l, err := loopback.Listen("127.0.0.1:0")
//	fmt.Println(s.URL(l))
//	err = s.Serve(ctx, l)
//
// A page reads what the control socket and the run's folder say: the run does not know of it, and does nothing for it but answer status. While
// nobody looks, nothing is read. Pages are HTML of this package and one style sheet; curves are pictures of pipeline/curves. Changes come as
// server-sent events. Without JavaScript a page loads itself again.
//
// Package loopback says who may ask. What folders, logs and metrics say is text of strangers: it is escaped, bounded, and never a path.
package dash
