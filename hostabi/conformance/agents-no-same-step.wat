;; Agents, and same_step is not offered: their episodes end apart, so it must be.
;; include agents
(global $acts i32 (i32.const -1))
(data (i32.const 0x43c) "\05\00\00\00")
