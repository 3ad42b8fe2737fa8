;; The guest that every case is made from. An environment counts its steps; its third step ends the episode: terminated
;; after action 1, truncated after action 0. It observes its age and the lowest three bits of its seed, and is rewarded with
;; its action. A new episode without a seed goes on with the seed 5 s + 1.
;; include frame
;; include step
