package main

import (
	"math"
	"slices"

	"github.com/rlhost/rlhost/sdk"
)

// arms is the number of the best arm of the bandit.
type arms int

func (arms) start(*sdk.Rand) {}

func (b arms) play(rng *sdk.Rand, action []float64) sdk.Result {
	luck := float32(rng.Below(2))
	if action[0] == float64(b) {
		luck = 1
	}
	return sdk.Result{Reward: luck, Terminated: true, Truncated: true}
}

func (arms) see() []float64 { return []float64{1} }

// memory is asked, after so many steps, for the cue that it showed.
type memory struct {
	delay, asked int // asked: steps until it is
	cue          uint32
}

func (m *memory) start(rng *sdk.Rand) { m.cue, m.asked = rng.Below(2), m.delay }

func (m *memory) play(_ *sdk.Rand, action []float64) (r sdk.Result) {
	if m.asked == 0 {
		r.Terminated = true
		if action[0] == float64(m.cue) {
			r.Reward = 1
		}
	}
	m.asked--
	return r
}

func (m *memory) see() []float64 {
	seen := make([]float64, 2)
	if m.asked == m.delay {
		seen[0] = 2*float64(m.cue) - 1
	}
	if m.asked == 0 {
		seen[1] = 1
	}
	return seen
}

type password struct {
	word  int
	order []int
	typed []float64 // in the order of typing, -1 or 1
}

func (p *password) start(rng *sdk.Rand) {
	p.order, p.typed = nil, nil
	for i := range 5 {
		p.order = append(p.order, i)
		place := rng.Below(uint32(i + 1))
		p.order[i], p.order[place] = p.order[place], i
	}
}

func (p *password) play(_ *sdk.Rand, action []float64) sdk.Result {
	p.typed = append(p.typed, 2*action[0]-1)
	if len(p.typed) < len(p.order) {
		return sdk.Result{}
	}
	for i, digit := range p.order {
		if p.typed[i] != float64(p.word/(1<<digit)%2*2-1) {
			return sdk.Result{Terminated: true}
		}
	}
	return sdk.Result{Reward: 1, Terminated: true}
}

func (p *password) see() []float64 {
	seen := make([]float64, 10)
	for i, digit := range p.typed {
		seen[p.order[i]] = digit
	}
	if len(p.typed) < len(p.order) {
		seen[5+p.order[len(p.typed)]] = 1
	}
	return seen
}

// place is a cell of a board.
type place struct{ row, column int }

// apart returns how many moves of a king two cells are apart.
func (p place) apart(q place) int {
	return int(max(math.Abs(float64(p.row-q.row)), math.Abs(float64(p.column-q.column))))
}

type squared struct {
	targets        int
	left           []place
	at             place
	nearest, steps int
}

func (s *squared) start(rng *sdk.Rand) {
	var rim []place
	for row := range 7 {
		for column := range 7 {
			if (place{row, column}).apart(place{3, 3}) == 3 {
				rim = append(rim, place{row, column})
			}
		}
	}
	s.left, s.at, s.nearest, s.steps = nil, place{3, 3}, 3, 0
	for i, p := range rim {
		if int(rng.Below(uint32(len(rim)-i))) < s.targets-len(s.left) {
			s.left = append(s.left, p)
		}
	}
}

func (s *squared) play(_ *sdk.Rand, action []float64) sdk.Result {
	turn := math.Pi / 4 * action[0] // clockwise from up
	s.at.row = min(max(s.at.row-int(math.Round(math.Cos(turn))), 0), 6)
	s.at.column = min(max(s.at.column+int(math.Round(math.Sin(turn))), 0), 6)
	s.steps++
	now := 100
	for _, p := range s.left {
		now = min(now, p.apart(s.at))
	}
	gained := max(s.nearest-now, 0)
	s.nearest -= gained
	if now == 0 {
		s.left = slices.DeleteFunc(s.left, func(p place) bool { return p == s.at })
		s.at, s.nearest = place{3, 3}, 3
	}
	return sdk.Result{Reward: float32(gained) / float32(3*s.targets), Terminated: len(s.left) == 0 || s.steps == 3*s.targets}
}

func (s *squared) see() []float64 {
	seen := make([]float64, 49)
	for _, p := range s.left {
		seen[p.row*7+p.column] = 1
	}
	seen[s.at.row*7+s.at.column] = -1
	return seen
}

// spaces has the pixels, the numbers and the clue in a row.
type spaces struct{ seen []float64 }

func (s *spaces) start(rng *sdk.Rand) {
	s.seen = nil
	bits := rng.Next()
	for i := range 25 {
		s.seen = append(s.seen, 255*float64(bits>>i%2))
	}
	for range 5 {
		s.seen = append(s.seen, float64(rng.Below(21))-10)
	}
	s.seen = append(s.seen, float64(rng.Below(3)))
}

func (s *spaces) play(rng *sdk.Rand, action []float64) sdk.Result {
	var sums [3]float64
	for i, v := range s.seen {
		sums[i/25+i/30] += v
	}
	right := 0
	for i, yes := range []bool{sums[0] > 12*255, sums[1] > 0} {
		if yes == (action[i] == 1) {
			right++
		}
	}
	if action[2] == sums[2] {
		right++
	}
	s.start(rng)
	return sdk.Result{Reward: float32(right) / 3, Terminated: true}
}

func (s *spaces) see() []float64 { return s.seen }

// tuple has three lamps, a gear and a wheel.
type tuple struct{ seen []float64 }

func (p *tuple) start(rng *sdk.Rand) {
	bits := rng.Next()
	p.seen = []float64{float64(bits & 1), float64(bits >> 1 & 1), float64(bits >> 2 & 1), float64(rng.Below(3)) - 1}
	rng.Below(3) // the lamp that is stuck
	rng.Below(2) // the gear that is barred
	p.seen = append(p.seen, float64(rng.Uniform(-1, 1)))
}

func (p *tuple) play(rng *sdk.Rand, action []float64) sdk.Result {
	score := max(1-float32(math.Abs(float64(float32(action[4])-float32(p.seen[4])))), 0)
	right := 0
	for i, wanted := range p.seen[:4] {
		if action[i] == wanted {
			right++
		}
	}
	p.start(rng)
	return sdk.Result{Reward: (float32(right) + score) / 5, Terminated: true}
}

func (p *tuple) see() []float64 { return p.seen }

type stochastic struct {
	part    float64
	horizon int
	right   float64
	surplus float64
	steps   int
}

func (s *stochastic) start(rng *sdk.Rand) {
	s.right, s.surplus, s.steps = float64(rng.Below(2)), 0, 0
}

func (s *stochastic) play(_ *sdk.Rand, action []float64) sdk.Result {
	before, chosen := math.Abs(s.surplus), 0.0
	if action[0] == s.right {
		chosen = 1
	}
	s.surplus += chosen - s.part
	s.steps++
	away := (math.Abs(s.surplus) - before) / max(s.part, 1-s.part)
	return sdk.Result{Reward: float32((1 - away) / float64(s.horizon)), Truncated: s.steps == s.horizon}
}

func (s *stochastic) see() []float64 { return []float64{2*s.right - 1} }

type continuous struct {
	at, goal       [2]float32
	first, nearest float32
	steps          int
}

func (c *continuous) distance() float32 {
	x, y := c.goal[0]-c.at[0], c.goal[1]-c.at[1]
	return float32(math.Sqrt(float64(float32(x*x) + float32(y*y))))
}

func (c *continuous) start(rng *sdk.Rand) {
	c.at = [2]float32{rng.Uniform(-1, 1), rng.Uniform(-1, 1)}
	c.goal = c.at
	for c.distance() < 0.5 {
		c.goal = [2]float32{rng.Uniform(-1, 1), rng.Uniform(-1, 1)}
	}
	c.first, c.nearest, c.steps = c.distance(), c.distance(), 0
}

func (c *continuous) play(_ *sdk.Rand, action []float64) sdk.Result {
	for i := range c.at {
		way := float32(0.2) * float32(action[i])
		c.at[i] = min(max(c.at[i]+way, -1), 1)
	}
	c.steps++
	r, now := sdk.Result{Terminated: c.steps == 20}, c.distance()
	if now <= 0.2 {
		r.Terminated, now = true, 0
	}
	if now < c.nearest {
		r.Reward, c.nearest = (c.nearest-now)/c.first, now
	}
	return r
}

func (c *continuous) see() []float64 {
	return []float64{float64(c.at[0]), float64(c.at[1]), float64(c.goal[0]), float64(c.goal[1])}
}

type breakout struct {
	sticky        float32
	limit, steps  int
	last          float64 // action
	paddle        int
	ball, trail   place
	down, right   int
	bricks        map[place]bool
	brokeTheOther bool // the step before broke a brick or flew through one
}

func (b *breakout) start(rng *sdk.Rand) {
	*b = breakout{sticky: b.sticky, limit: b.limit, paddle: 4, ball: place{3, 0}, down: 1, right: 1}
	if rng.Below(2) == 1 {
		b.ball.column, b.right = 9, -1
	}
	b.trail = b.ball
	b.build()
}

func (b *breakout) build() {
	b.bricks = map[place]bool{}
	for i := range 30 {
		b.bricks[place{1 + i/10, i % 10}] = true
	}
}

func (b *breakout) play(rng *sdk.Rand, action []float64) sdk.Result {
	if rng.Uniform(0, 1) >= b.sticky {
		b.last = action[0]
	}
	switch b.last {
	case 1:
		b.paddle = max(b.paddle-1, 0)
	case 2:
		b.paddle = min(b.paddle+1, 9)
	}
	from := b.ball
	to := place{from.row + b.down, from.column + b.right}
	if to.column < 0 || to.column > 9 {
		to.column, b.right = from.column, -b.right
	}
	r := sdk.Result{}
	broke := b.bricks[to]
	switch {
	case to.row < 0:
		to.row, b.down = 0, 1
	case broke && !b.brokeTheOther:
		delete(b.bricks, to)
		r.Reward = 1
		to.row, b.down = from.row, -b.down
	case to.row == 9:
		if len(b.bricks) == 0 {
			b.build()
		}
		switch b.paddle {
		case from.column:
			to.row, b.down = from.row, -1
		case to.column:
			to.row, b.down, b.right = from.row, -1, -b.right
		default:
			r.Terminated = true
		}
	}
	b.ball, b.trail, b.brokeTheOther = to, from, broke
	b.steps++
	r.Truncated = b.steps == b.limit
	return r
}

func (b *breakout) see() []float64 {
	planes := make([]float64, 400)
	set := func(p place, plane int) { planes[(p.row*10+p.column)*4+plane] = 1 }
	set(place{9, b.paddle}, 0)
	set(b.ball, 1)
	set(b.trail, 2)
	for p := range b.bricks {
		set(p, 3)
	}
	return planes
}

type freeway struct {
	sticky       float32
	limit, steps int
	last         float64 // action
	chicken      place
	rest         int
	cars         [8]struct {
		place
		wait, pause, right int
	}
}

func (f *freeway) start(rng *sdk.Rand) {
	*f = freeway{sticky: f.sticky, limit: f.limit, chicken: place{9, 4}, rest: 3}
	for i := range f.cars {
		f.cars[i].row = i + 1
	}
	f.draw(rng)
}

func (f *freeway) draw(rng *sdk.Rand) {
	for i := range f.cars {
		pause := int(rng.Below(5)) + 1
		f.cars[i].pause, f.cars[i].wait = pause, pause
		f.cars[i].right = 2*int(rng.Below(2)) - 1
	}
}

func (f *freeway) play(rng *sdk.Rand, action []float64) sdk.Result {
	if rng.Uniform(0, 1) >= f.sticky {
		f.last = action[0]
	}
	moves := f.last != 0 && f.rest == 0
	if moves {
		f.chicken.row = min(f.chicken.row+int(2*f.last)-3, 9)
		f.rest = 3
	}
	r := sdk.Result{}
	if f.chicken.row == 0 {
		r.Reward, f.chicken.row = 1, 9
		f.draw(rng)
	}
	for i := range f.cars {
		c := &f.cars[i]
		if c.place == f.chicken {
			f.chicken.row = 9
		}
		c.wait--
		if c.wait >= 0 {
			continue
		}
		c.wait, c.column = c.pause, (c.column+c.right+10)%10
		if c.place == f.chicken {
			f.chicken.row = 9
		}
	}
	f.rest = max(f.rest-1, 0)
	f.steps++
	r.Truncated = f.steps == f.limit
	return r
}

func (f *freeway) see() []float64 {
	planes := make([]float64, 700)
	set := func(row, column, plane int) { planes[(row*10+column)*7+plane] = 1 }
	set(f.chicken.row, f.chicken.column, 0)
	for _, c := range f.cars {
		set(c.row, c.column, 1)
		set(c.row, (c.column-c.right+10)%10, 1+c.pause)
	}
	return planes
}

type squash struct {
	limit, steps int
	ball         place
	down, right  int
	paddle       int
}

func (s *squash) start(rng *sdk.Rand) {
	*s = squash{limit: s.limit, ball: place{0, int(rng.Below(81))}, down: 3, paddle: 34}
	s.right = int(rng.Below(7)) - 3
}

func (s *squash) play(_ *sdk.Rand, action []float64) sdk.Result {
	switch action[0] {
	case 1:
		s.paddle = max(s.paddle-4, 0)
	case 2:
		s.paddle = min(s.paddle+4, 68)
	}
	s.ball.row += s.down
	s.ball.column += s.right
	if s.ball.row < 0 {
		s.ball.row, s.down = 0, 3
	}
	if s.ball.column < 0 || s.ball.column > 80 {
		s.ball.column, s.right = min(max(s.ball.column, 0), 80), -s.right
	}
	s.steps++
	r := sdk.Result{Truncated: s.steps == s.limit}
	if s.down < 0 || s.ball.row <= 74 {
		return r
	}
	off := s.ball.column + 2 - s.paddle - 8
	if off < -10 || off > 10 {
		r.Terminated = true
		return r
	}
	r.Reward = 1
	s.ball.row, s.down, s.right = 74, -3, off/3
	return r
}

func (s *squash) see() []float64 {
	picture := make([]float64, 84*84)
	for row := range 84 {
		for column := range 84 {
			if row >= 78 && row < 81 && column >= s.paddle && column < s.paddle+16 {
				picture[row*84+column] = 128
			}
			if row >= s.ball.row && row < s.ball.row+4 && column >= s.ball.column && column < s.ball.column+4 {
				picture[row*84+column] = 255
			}
		}
	}
	return picture
}
