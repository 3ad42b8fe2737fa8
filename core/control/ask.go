package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// AskRequest asks components a question that they answer by its name.
type AskRequest struct {
	// Patterns name the components; see Match. None means all that answer the request.
	Patterns []string `json:"patterns,omitempty"`
	// Name is the request; empty asks which requests they answer.
	Name string          `json:"name,omitempty"`
	Args json.RawMessage `json:"args,omitempty"` // an object; none is {}
	// Each has the arguments for single components, by name, in the place of Args.
	Each     map[string]json.RawMessage `json:"each,omitempty"`
	Deadline float64                    `json:"deadline_seconds,omitempty"` // of the whole request; 0 is 30
}

// AskReply has an answer of each component asked, in the order of the graph, or what they answer.
type AskReply struct {
	Answers []AskAnswer `json:"answers,omitempty"`
	Offers  []Offer     `json:"offers,omitempty"`
}

// AskAnswer is one component's answer: a reply, or an error.
type AskAnswer struct {
	Answer
	Reply json.RawMessage `json:"reply,omitempty"`
}

// Offer lists the requests that a component answers.
type Offer struct {
	Name     string            `json:"name"` // of the component
	Requests []hostabi.Request `json:"requests"`
}

// Ask makes a request of several components of a job; see Client.Do.
func (c *Client) Ask(ctx context.Context, q AskRequest) (AskReply, error) {
	var reply AskReply
	err := c.Do(ctx, VerbRequest, q, &reply, nil)
	return reply, err
}

// AskOne makes a request of one component and fills into from its reply; nil forgets that. The error is an *Error.
func (c *Client) AskOne(ctx context.Context, component, name string, args json.RawMessage, into any) error {
	q := AskRequest{Patterns: []string{component}, Name: name, Args: args}
	if at, ok := ctx.Deadline(); ok {
		q.Deadline = max(time.Until(at).Seconds(), 1e-3)
	}
	reply, err := c.Ask(ctx, q)
	if err != nil {
		return err
	}
	if n := len(reply.Answers); n != 1 {
		return Errorf(CodeBad, "%q names %d components, want one", component, n)
	}
	a := &reply.Answers[0]
	if a.Error != nil {
		return a.Error
	}
	if into == nil {
		return nil
	}
	return asAnswer(VerbRequest, json.Unmarshal(a.Reply, into))
}
