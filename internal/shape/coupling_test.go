package shape

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"testing"
)

// Limits of coupling. They fail, as sizes do not: a package over them cannot be read a file at a time.
const (
	maxBack     = 15 // percent of a package's arrows that run back
	fewArrows   = 50 // fewer tell nothing: three files that know each other are a fifth of them
	maxMethods  = 60 // methods of a type, its own and the ones promoted from our types
	maxEmbedded = 2  // types of ours embedded in each other
)

// arrows says which files of a package use a name that another one declares: of the package, or a method. uses[i][j]: file i uses j.
func (c *checked) arrows() (files []string, uses [][]bool) {
	files = slices.Sorted(maps.Keys(c.files))
	uses = make([][]bool, len(files))
	for i, name := range files {
		uses[i] = make([]bool, len(files))
		ast.Inspect(c.files[name], func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			if j := slices.Index(files, c.declaredIn(c.info.Uses[id])); j >= 0 && j != i {
				uses[i][j] = true
			}
			return true
		})
	}
	return files, uses
}

// declaredIn returns the file that declares a name of the package, or a method; empty for anything else.
func (c *checked) declaredIn(o types.Object) string {
	if o == nil || o.Pkg() != c.types {
		return ""
	}
	method := false
	if f, ok := o.(*types.Func); ok {
		method = f.Signature().Recv() != nil
	}
	if o.Parent() != c.types.Scope() && !method {
		return ""
	}
	return c.fileOf(o)
}

// ranked orders files so that few arrows run back, to an earlier file. It takes, again and again, the first file that no remaining one
// uses, else puts last a file that uses no remaining one, else takes the file that uses most and is used least. Then each file moves to
// its best place until none does.
func ranked(uses [][]bool) []int {
	rest := make([]int, len(uses))
	for i := range rest {
		rest[i] = i
	}
	var first, last []int
	for len(rest) > 0 {
		at, behind := pick(rest, uses)
		if behind {
			last = append(last, rest[at])
		} else {
			first = append(first, rest[at])
		}
		rest = slices.Delete(rest, at, at+1)
	}
	slices.Reverse(last)
	order := append(first, last...)
	for moved := true; moved; {
		moved = false
		for f := range uses {
			moved = sift(order, f, uses) || moved
		}
	}
	return order
}

// pick chooses the next of the remaining files, and whether it goes to the end.
func pick(rest []int, uses [][]bool) (at int, behind bool) {
	best := -len(uses) - 1
	for i, f := range rest {
		used, using := 0, 0
		for _, g := range rest {
			if uses[g][f] {
				used++
			}
			if uses[f][g] {
				using++
			}
		}
		switch {
		case used == 0:
			return i, false
		case using == 0:
			at, behind, best = i, true, len(uses)+1
		case using-used > best:
			at, best = i, using-used
		}
	}
	return at, behind
}

// sift moves a file to the place with the fewest arrows back, and reports whether that is another.
func sift(order []int, f int, uses [][]bool) bool {
	from := slices.Index(order, f)
	without := slices.Delete(slices.Clone(order), from, from+1)
	// cost of a place: arrows from the file to earlier ones, and from later ones to the file
	cost := 0
	for _, g := range without {
		if uses[g][f] {
			cost++
		}
	}
	best, least, was := 0, cost, cost
	for i, g := range without {
		if uses[f][g] {
			cost++
		}
		if uses[g][f] {
			cost--
		}
		if i+1 == from {
			was = cost
		}
		if cost < least {
			best, least = i+1, cost
		}
	}
	if least == was {
		return false
	}
	copy(order, slices.Insert(without, best, f))
	return true
}

// back returns how many arrows there are, and how many run back.
func back(order []int, uses [][]bool) (all, n int) {
	for i, f := range order {
		for j, g := range order {
			if uses[f][g] {
				all++
				if j < i {
					n++
				}
			}
		}
	}
	return all, n
}

func TestShape_ArrowsWithinAPackageRunOneWay(t *testing.T) {
	t.Parallel()
	for _, c := range mustPackages(t) {
		files, uses := c.arrows()
		order := ranked(uses)
		all, n := back(order, uses)
		if all < fewArrows {
			continue
		}
		t.Logf("%s: %d files, %d of %d arrows back", c.dir, len(files), n, all)
		if 100*n <= maxBack*all {
			continue
		}
		t.Errorf("%s: %d of %d arrows between its files run back, more than %d %%", c.dir, n, all, maxBack)
		for i, f := range order {
			for _, g := range order[:i] {
				if uses[f][g] {
					t.Logf("\t%s uses %s", files[f], files[g])
				}
			}
		}
	}
}

// A type's methods are its own and the ones promoted from our types that it embeds: moving methods into an embedded part removes none.
func TestShape_TypesHaveFewMethodsAndShallowParts(t *testing.T) {
	t.Parallel()
	for _, c := range mustPackages(t) {
		for _, name := range c.types.Scope().Names() {
			declared, isType := c.types.Scope().Lookup(name).(*types.TypeName)
			if !isType {
				continue
			}
			named, ok := declared.Type().(*types.Named)
			if !ok {
				continue
			}
			if n := methodsOf(named); n > maxMethods {
				t.Errorf("%s.%s has %d methods with those promoted from our types, more than %d", c.dir, name, n, maxMethods)
			}
			if n := depthOf(named); n > maxEmbedded {
				t.Errorf("%s.%s embeds types %d deep, more than %d", c.dir, name, n, maxEmbedded)
			}
		}
	}
}

// methodsOf counts the methods of a struct and of its pointer, without any promoted from other modules' types.
func methodsOf(t *types.Named) (n int) {
	if _, ok := t.Underlying().(*types.Struct); !ok {
		return 0
	}
	set := types.NewMethodSet(types.NewPointer(t))
	for i := range set.Len() {
		if ours(set.At(i).Obj().Pkg()) {
			n++
		}
	}
	return n
}

// depthOf returns how many structs of ours are embedded in each other.
func depthOf(t *types.Named) (deepest int) {
	fields, ok := t.Underlying().(*types.Struct)
	if !ok {
		return 0
	}
	for f := range fields.Fields() {
		if !f.Embedded() {
			continue
		}
		inner := f.Type()
		if p, ok := inner.(*types.Pointer); ok {
			inner = p.Elem()
		}
		if named, ok := inner.(*types.Named); ok && ours(named.Obj().Pkg()) {
			if _, ok := named.Underlying().(*types.Struct); ok {
				deepest = max(deepest, 1+depthOf(named))
			}
		}
	}
	return deepest
}

func ours(p *types.Package) bool {
	if p == nil {
		return false
	}
	_, yes := folderOf(p.Path())
	return yes
}
