package table

import (
	"slices"
	"testing"
)

const samplePages = "# Codes\n\nAn introduction.\n\n## E001 broken syntax\n\nThe file is not\nTOML. Nothing else\nwas checked.\n\n    seed = \"1\n\nFix: look.\n\n" +
	"## D03 no sharing\n\nOne paragraph with one sentence\n"

func TestCodes_AreInTheOrderOfThePages(t *testing.T) {
	if got, want := Codes(samplePages), []string{"E001", "D03"}; !slices.Equal(got, want) {
		t.Errorf("Codes = %q, want %q", got, want)
	}
}

func TestSummary_IsTheFirstSentenceOnOneLine(t *testing.T) {
	for code, want := range map[string][2]string{
		"E001": {"E001 broken syntax", "The file is not TOML."},
		"D03":  {"D03 no sharing", "One paragraph with one sentence"},
	} {
		page, ok := Page(samplePages, code)
		title, sentence := Summary(page)
		if got := [2]string{title, sentence}; !ok || got != want {
			t.Errorf("Summary of %s = %q, want %q", code, got, want)
		}
	}
}
