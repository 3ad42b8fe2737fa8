;; A flag of a group: there is none.
;; include agents
(global $acts i32 (i32.const -1))
(data (i32.const 0x488) "\01")
