// Package control defines how a running job is queried and how it answers: the verbs and their documents, the states of
// components, errors with codes, the local socket between them, and requests to groups of components with one deadline.
//
//	verbs := control.Verbs{} // in the job
//	control.On(verbs, control.VerbSwap, func(ctx context.Context, q control.SwapRequest, notice control.Notice) (control.SwapReply, error) { ... })
//	server, err := control.Listen(control.SocketPath(runDir), verbs, control.ListenOptions{})
//	defer server.Close()
//
//	client, err := control.Dial(ctx, path) // in the command
//	var reply control.SwapReply
//	err = client.Do(ctx, control.VerbSwap, control.SwapRequest{Component: "rollout", File: "lander2.wasm"}, &reply, notice)
//
// The socket is one of core/ipc; both ends check the other's user. A connection carries one request at a time, as JSON
// behind its length; the answer is any number of notices, then a result or an error. A client that disconnects cancels
// its request.
//
// What a verb does is up to its handler.
package control
