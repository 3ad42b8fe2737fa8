;; The name of an agent is not empty.
;; include agents
(global $acts i32 (i32.const -1))
(data (i32.const 0x48c) "\0f")                                                         ;; agent_names
(data (i32.const 0xc0f) "red\0a\00")
