;; A group may name its agents, one name a line.
;; include agents
(global $acts i32 (i32.const -1))
(data (i32.const 0x48c) "\0f")                                                         ;; agent_names
(data (i32.const 0xc0f) "red\0ablue\00")
