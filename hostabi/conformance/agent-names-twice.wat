;; No two agents of a group have one name.
;; include agents
(global $acts i32 (i32.const -1))
(data (i32.const 0x48c) "\0f")                                                         ;; agent_names
(data (i32.const 0xc0f) "red\0ared\00")
