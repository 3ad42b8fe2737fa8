;; A group that is alone needs no name.
;; include agents
(global $acts i32 (i32.const -1))
(data (i32.const 0x480) "\00")
