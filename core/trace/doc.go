// Package trace follows single datasets on their way: from the environments that step into their blocks over the batcher and the learner to the
// components that act with the version that is made of them.
//
//	t := trace.New(func(way trace.Way) { … })
//	from := t.Now()
//	…
//	t.Wrote("rollout", 0, block, from)
//
// Components call the tracer of their Host, which is nil in runs that follow nothing. Package pipeline/otlp writes ways as OpenTelemetry's
// traces.
package trace
