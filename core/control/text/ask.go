package text

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/rlhost/rlhost/core/control"
)

// Ask describes the components' answers to a request, or what they answer: a line for each.
func Ask(r *control.AskReply) string {
	var b strings.Builder
	for i := range r.Answers {
		a := &r.Answers[i]
		if a.Error != nil {
			fmt.Fprintf(&b, "%s: %s", a.Name, askError(a.Error))
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", a.Name, a.Reply)
	}
	offers(&b, r.Offers)
	return b.String()
}

func askError(e *control.Error) string {
	text := fmt.Sprintf("error[%s]: ", e.Code)
	if e.Type != "" {
		text += e.Type + ": "
	}
	text += e.Reason
	if e.Place != "" {
		text += " (" + e.Place + ")"
	}
	text += "\n"
	if e.Help != "" {
		text += "  help: " + e.Help + "\n"
	}
	return text
}

// offers writes a row for each request of each component that answers some.
func offers(b *strings.Builder, list []control.Offer) {
	if len(list) == 0 {
		return
	}
	none := true
	rows := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for i := range list {
		for j := range list[i].Requests {
			r := &list[i].Requests[j]
			fmt.Fprintf(rows, "%s\t%s\t%s\n", list[i].Name, r, r.Doc)
			none = false
		}
	}
	_ = rows.Flush() // into a string
	if none {
		b.WriteString("none of them answers requests\n")
	}
}
