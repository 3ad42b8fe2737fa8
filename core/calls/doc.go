// Package calls asks another program to do something once, over a way that loses, doubles and reorders messages.
//
//	caller := calls.NewCaller(session, send)      // send may lose frames
//	reply, err := caller.Call(ctx, bytes)
//
//	answerer := calls.NewAnswerer(send, handle)   // there: handle runs once for each call, in their order
//	answerer.Hear(frame)                          // for each frame that arrives; here: caller.Hear
//
// A call goes in parts, each of which is repeated until its answer is there; so does the reply. It knows no connection and no clock but that
// of its timers, and sends nothing by itself but what a call needs.
package calls
