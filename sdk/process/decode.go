package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi/native"
)

// decodeJSON decodes a document; numbers without a type stay text.
func decodeJSON(doc []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the document")
	}
	return nil
}

// configErrors returns the errors in a table, one entry for each key.
func configErrors(err error) []native.ConfigError {
	var list []native.ConfigError
	for _, e := range table.All(err) {
		list = append(list, native.ConfigError{Key: e.Key, Reason: e.Reason, Help: e.Help, Code: e.Code})
	}
	return list
}

// tableOf returns the decoder of a document's table.
func tableOf(doc map[string]any) func(into any) error {
	return func(into any) error { return table.Decode(table.Plain(doc), into) }
}
