;; Rewards and flags that are not per agent are those of all agents of the environment.
;; include agents
(global $acts i32 (i32.const -1))
(data (i32.const 0x608) "\02")
(data (i32.const 0x688) "\02")
(data (i32.const 0x708) "\02")
