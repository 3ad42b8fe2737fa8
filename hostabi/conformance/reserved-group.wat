;; A reserved byte of a group is not 0.
;; include agents
(global $acts i32 (i32.const -1))
(data (i32.const 0x49c) "\01")
