;; A need that version 1 has: a host without episode_seed refuses it by that name.
;; include guest
(data (i32.const 0x411) "\01")
