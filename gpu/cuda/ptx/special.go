package ptx

// specials are the special registers that are run, with their values for a lane. What depends on time or place on the
// device (%clock, %smid) is not among them.
var specials = map[string]func(w *warp, lane int) uint32{
	"%tid.x":    func(w *warp, lane int) uint32 { return uint32(w.thread(lane) % w.block()[0]) },
	"%tid.y":    func(w *warp, lane int) uint32 { return uint32(w.thread(lane) / w.block()[0] % w.block()[1]) },
	"%tid.z":    func(w *warp, lane int) uint32 { return uint32(w.thread(lane) / (w.block()[0] * w.block()[1])) },
	"%ntid.x":   func(w *warp, _ int) uint32 { return uint32(w.block()[0]) },
	"%ntid.y":   func(w *warp, _ int) uint32 { return uint32(w.block()[1]) },
	"%ntid.z":   func(w *warp, _ int) uint32 { return uint32(w.block()[2]) },
	"%ctaid.x":  func(w *warp, _ int) uint32 { return uint32(w.cta.at[0]) },
	"%ctaid.y":  func(w *warp, _ int) uint32 { return uint32(w.cta.at[1]) },
	"%ctaid.z":  func(w *warp, _ int) uint32 { return uint32(w.cta.at[2]) },
	"%nctaid.x": func(w *warp, _ int) uint32 { return uint32(w.cta.grid.launch.Grid[0]) },
	"%nctaid.y": func(w *warp, _ int) uint32 { return uint32(w.cta.grid.launch.Grid[1]) },
	"%nctaid.z": func(w *warp, _ int) uint32 { return uint32(w.cta.grid.launch.Grid[2]) },
	"%laneid":   func(_ *warp, lane int) uint32 { return uint32(lane) },
}

// thread is the number of a lane's thread within the CTA.
func (w *warp) thread(lane int) int { return w.number*lanes + lane }

func (w *warp) block() [3]int { return w.cta.grid.launch.Block }
