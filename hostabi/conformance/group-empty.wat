;; A group without agents.
;; include agents
(global $acts i32 (i32.const -1))
(data (i32.const 0x484) "\00")
