;; A group of more than 4,096 agents.
;; include agents
(global $acts i32 (i32.const -1))
(data (i32.const 0x484) "\01\10")
