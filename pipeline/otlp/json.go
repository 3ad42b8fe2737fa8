package otlp

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/rlhost/rlhost/core/trace"
)

// The part of OTLP's ExportTraceServiceRequest that is written. Identifiers are in hexadecimal digits, 64-bit numbers are texts.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name string `json:"name"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		ParentID   string      `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes,omitempty"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		Text   *string `json:"stringValue,omitempty"`
		Number *string `json:"intValue,omitempty"`
	}
)

// kindInternal is SPAN_KIND_INTERNAL.
const kindInternal = 1

// encode returns the trace of a way, in a line.
func encode(run string, way trace.Way) ([]byte, error) {
	id := identifier(16)
	root := span{TraceID: id, SpanID: identifier(8), Name: "dataset", Kind: kindInternal}
	from, to := way[0].From, way[0].To
	spans := make([]span, 1, len(way)+1)
	for i := range way {
		s := &way[i]
		if s.From.Before(from) {
			from = s.From
		}
		if s.To.After(to) {
			to = s.To
		}
		spans = append(spans, span{
			TraceID: id, SpanID: identifier(8), ParentID: root.SpanID, Name: string(s.Stage), Kind: kindInternal,
			Start: nanoseconds(s.From), End: nanoseconds(s.To), Attributes: attributesOf(s),
		})
		if s.Stage == trace.Learner {
			root.Attributes = []attribute{text("rlhost.policy", s.Policy), number("rlhost.policy_version", s.Version)}
		}
	}
	root.Start, root.End = nanoseconds(from), nanoseconds(to)
	spans[0] = root
	return json.Marshal(request{[]resourceSpans{{
		Resource:   resource{[]attribute{text("service.name", "rlhost"), text("service.instance.id", run)}},
		ScopeSpans: []scopeSpans{{Scope: scope{"rlhost"}, Spans: spans}},
	}}})
}

func attributesOf(s *trace.Span) []attribute {
	list := []attribute{text("rlhost.component", s.Component)}
	switch s.Stage {
	case trace.Rollout:
		list = append(list, number("rlhost.split", uint64(s.Split)))
	case trace.Batcher:
		list = append(list, number("rlhost.blocks", uint64(s.Blocks)))
	case trace.Learner, trace.Inference:
		list = append(list, text("rlhost.policy", s.Policy), number("rlhost.policy_version", s.Version))
	}
	return list
}

func text(key, of string) attribute { return attribute{key, value{Text: &of}} }

func number(key string, of uint64) attribute {
	digits := strconv.FormatUint(of, 10)
	return attribute{key, value{Number: &digits}}
}

func nanoseconds(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// identifier returns random bytes in hexadecimal digits.
func identifier(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
