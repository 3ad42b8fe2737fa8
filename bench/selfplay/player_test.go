package main

import (
	"slices"
	"strings"
	"testing"
)

// boardOf reads a board, its highest row first: x are the stones of the player to move, o the opponent's.
func boardOf(t *testing.T, text string) (b board) {
	t.Helper()
	lines := strings.Fields(text)
	for i, line := range lines {
		row := len(lines) - 1 - i
		for column, c := range line {
			b.own[row*columns+column], b.other[row*columns+column] = c == 'x', c == 'o'
		}
	}
	return b
}

func TestSearch_TakesTheBestMoves(t *testing.T) {
	for _, c := range []struct {
		name, board string
		looking     int
		want        []int
	}{
		{"all are as good in the beginning", ".......", 2, []int{0, 1, 2, 3, 4, 5, 6}},
		{"wins in a row", "xxx.ooo", 2, []int{3}},
		{"wins in a column", "x...... x.....o x....oo", 2, []int{0}},
		{"wins rising", "...o... ..xo... .xoo... xoox...", 2, []int{3}},
		{"blocks a row", "ooo.x.x", 2, []int{3}},
		{"does not see it", "ooo.x.x", 0, []int{0, 1, 2, 3, 4, 5, 6}},
		{"wins before it blocks", "xxx.... ooo.x..", 1, []int{0, 1, 2, 3, 4, 5, 6}},
		{"does not lift the other into a row", "ooo.x.. xxo.o..", 2, []int{0, 1, 2, 4, 5, 6}},
		{"has lost either way", ".ooo...", 2, []int{0, 1, 2, 3, 4, 5, 6}},
		{"leaves out what is full", "o...... x...... o...... x...... o...... x......", 0, []int{1, 2, 3, 4, 5, 6}},
	} {
		b := boardOf(t, c.board)
		if got := b.search(c.looking); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
