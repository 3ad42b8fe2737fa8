// Package otlp writes the ways of datasets as traces of OpenTelemetry, in OTLP's JSON: to a file, a line each, which the otlpjsonfile receiver of
// a collector reads, or by HTTP to a collector or any other server that takes OTLP.
//
//	e, err := otlp.Open("http://127.0.0.1:4318", otlp.Options{Run: "cartpole/0001"})
//	tracer := trace.New(e.Export)
//	…
//	tracer.Close()
//	err = e.Close()
//
// A trace has a span dataset, with a span for each stage below it. OpenTelemetry's own exporter is not used: RATIONALE.md says why.
package otlp
