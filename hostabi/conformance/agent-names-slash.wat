;; The name of an agent has no slash and no space.
;; include agents
(global $acts i32 (i32.const -1))
(data (i32.const 0x48c) "\0f")                                                         ;; agent_names
(data (i32.const 0xc0f) "red\0ab/e\00")
