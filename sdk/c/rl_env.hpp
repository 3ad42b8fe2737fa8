// Hand-written. Environments in C++20: a class with reset and step, and one line RL_CLASS. Its state may be in std::vector and
// std::string.
//
//	#include "rl_env.hpp"
//
//	class Walk {
//	    std::vector<uint8_t> seen;
//	    int32_t position = 0;
//
//	public:
//	    bool setup(rl_config *config)                       // (optional) reads arguments; false after rl_fail("why")
//	    {
//	        seen.resize((size_t)rl_arg_i64(config, "length", 10));
//	        return !seen.empty() || rl_fail("length must not be 0");
//	    }
//	    void reset(rl_rng &rng, float *obs);                // write the first observation
//	    void step(rl_rng &rng, const int32_t *action, float *obs, rl_result &out);
//	    template <class Archive> void fields(Archive &archive) { archive(seen, position); } // what is saved
//	};
//
//	RL_CLASS(Walk, .name = "walk@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 1, 1))
//
// The fields of RL_CLASS are those of rl_env (rl_env.h), in its order. Several agents take rl_result *out, and a Dict takes a struct of
// RL_DICT: const Seen *obs, const Acts *action. A class may have besides
//
//	static bool spaces(rl_config *config, rl_env *env); // changes spaces and limits that depend on arguments
//	void mask(uint8_t *legal) const;                    // as in rl_env
//	void active(uint8_t *acts) const;                   // as in rl_env
//	std::string render() const;                         // text
//	void draw(rl_picture *picture) const;               // as in rl_env
//
// It is saved by fields; or by std::vector<uint8_t> save() const and bool load(const uint8_t *from, uint32_t len); or, without these,
// as its bytes, if it is trivially copyable; or not at all, with static constexpr bool saved = false.
//
// A module has no exceptions: rlhost refuses those of WebAssembly. Build with -fno-exceptions, and return errors from setup; what
// std:: would throw, as of vector::at, is a trap, which ends the episode with the line where it was built with -g.
#ifndef RL_ENV_HPP
#define RL_ENV_HPP

#include "rl_env.h"

#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// rl_archive visits the fields of a class: it measures them, writes them or reads them. It takes numbers, enums, trivially copyable
// structs, classes with a member fields, arrays, and std::array, std::vector, std::deque and std::string of these.
class rl_archive {
    uint8_t *to = nullptr;
    const uint8_t *from = nullptr;
    uint32_t at = 0, len = 0;
    bool wrong = false;

    void bytes(void *field, size_t n)
    {
        if (from && (wrong || n > len - at)) {
            wrong = true;
            return;
        }
        if (from && n) memcpy(field, from + at, n);
        if (to && n) memcpy(to + at, field, n);
        at += (uint32_t)n;
    }

    template <class T> void elements(T &field)
    {
        using Element = std::remove_cvref_t<decltype(*field.begin())>;
        if constexpr (std::is_same_v<T, std::vector<bool>>) // whose elements are bits
            for (auto &&bit : field) {
                uint8_t byte = bit;
                bytes(&byte, 1);
                bit = byte != 0;
            }
        else if constexpr (requires { field.data(); } && std::is_trivially_copyable_v<Element> && !std::is_pointer_v<Element>)
            bytes((void *)field.data(), field.size() * sizeof(Element));
        else
            for (auto &&element : field) one(element);
    }

    template <class T> void one(T &field)
    {
        static_assert(!std::is_pointer_v<T>, "a pointer cannot be saved: elsewhere, everything lies elsewhere");
        if constexpr (requires { field.fields(*this); }) {
            field.fields(*this);
        } else if constexpr (requires { field.resize(0); field.begin(); }) {
            uint32_t n = (uint32_t)field.size();
            bytes(&n, sizeof n);
            if (from && n > len - at) wrong = true; // an element has a byte at least
            if (wrong) return;
            if (from) field.resize(n);
            elements(field);
        } else if constexpr (std::is_trivially_copyable_v<T>) {
            bytes(&field, sizeof field);
        } else if constexpr (std::is_array_v<T>) {
            for (auto &element : field) one(element);
        } else {
            static_assert(requires { field.begin(); }, "rl_archive cannot save a field of this type: give its class a member fields");
            elements(field);
        }
    }

public:
    static rl_archive writer(uint8_t *to) // which measures, where to is NULL
    {
        rl_archive archive;
        archive.to = to;
        return archive;
    }
    static rl_archive reader(const uint8_t *from, uint32_t len)
    {
        rl_archive archive;
        archive.from = from;
        archive.len = len;
        return archive;
    }
    template <class... Fields> void operator()(Fields &...fields) { (one(fields), ...); }
    uint32_t size() const { return at; }
    bool whole() const { return !wrong && at == len; } // all of what a reader was given has been read
};

// rl_out is the result of a step as the author takes it: a reference, or a pointer to those of several agents.
struct rl_out {
    rl_result *at;
    operator rl_result *() const { return at; }
    operator rl_result &() const { return *at; }
};

// rl_class makes the functions of rl_env out of the author's class.
template <class T> struct rl_class {
    static constexpr bool has_fields = requires(T &t, rl_archive &a) { t.fields(a); };
    static constexpr bool has_save = requires(const T &t) { t.save().size(); };
    static constexpr bool is_plain = !has_fields && !has_save && std::is_trivially_copyable_v<T>;
    static constexpr bool not_saved = [] {
        if constexpr (requires { T::saved; }) return !T::saved;
        else return false;
    }();
    static_assert(has_fields || has_save || is_plain || not_saved,
                  "how is it saved? Give the class a member fields, or save and load, or static constexpr bool saved = false");

    static T *of(void *all, uint32_t i) { return static_cast<T *>(all) + i; }

    static void destroy(void *all, uint32_t envs)
    {
        for (uint32_t i = 0; i < envs; i++) of(all, i)->~T();
        rl_put(all, envs * (uint32_t)sizeof(T));
    }

    static void *create(uint32_t envs, rl_config *config)
    {
        void *all = rl_new(envs, sizeof(T));
        if (!all) return rl_fail("out of memory"), nullptr;
        for (uint32_t i = 0; i < envs; i++) new (of(all, i)) T();
        if constexpr (requires(T &t) { t.setup(config); })
            for (uint32_t i = 0; i < envs; i++)
                if (!of(all, i)->setup(config)) return destroy(all, envs), nullptr;
        return all;
    }

    RL_INLINE void first(void *all, uint32_t i, rl_rng *rng, void *obs) { of(all, i)->reset(*rng, RL_ANY(obs)); }
    static void reset(void *all, uint32_t i, rl_rng *rng, const rl_tensor *obs, void *row) { rl_first(all, i, rng, obs, row, first); }
    RL_INLINE void one(void *all, uint32_t i, rl_rng *rng, const void *action, void *obs, rl_result *out)
    {
        of(all, i)->step(*rng, RL_ANY(action), RL_ANY(obs), rl_out{out});
    }
    static void step(void *all, uint32_t from, uint32_t count, const rl_view *view) { rl_each(all, from, count, view, one); }

    static uint32_t save_length(void *all, uint32_t i)
    {
        if constexpr (has_save) return (uint32_t)of(all, i)->save().size();
        rl_archive archive = rl_archive::writer(nullptr);
        if constexpr (has_fields) of(all, i)->fields(archive);
        return archive.size();
    }

    static void save(void *all, uint32_t i, uint8_t *to)
    {
        if constexpr (has_save) {
            auto bytes = of(all, i)->save();
            memcpy(to, bytes.data(), bytes.size());
        } else if constexpr (has_fields) {
            rl_archive archive = rl_archive::writer(to);
            of(all, i)->fields(archive);
        }
    }

    // load changes nothing where the bytes are not such a state.
    static bool load(void *all, uint32_t i, const uint8_t *from, uint32_t len)
    {
        T loaded(*of(all, i));
        if constexpr (has_save) {
            if (!loaded.load(from, len)) return false;
        } else if constexpr (has_fields) {
            rl_archive archive = rl_archive::reader(from, len);
            loaded.fields(archive);
            if (!archive.whole()) return false;
        }
        *of(all, i) = std::move(loaded);
        return true;
    }

    static constexpr auto describe()
    {
        if constexpr (requires(rl_config *config, rl_env *env) { T::spaces(config, env); }) return &T::spaces;
        else return nullptr;
    }
    static constexpr auto mask()
    {
        if constexpr (requires(const T &t, uint8_t *legal) { t.mask(legal); })
            return +[](void *all, uint32_t i, uint8_t *legal) { of(all, i)->mask(legal); };
        else return nullptr;
    }
    static constexpr auto active()
    {
        if constexpr (requires(const T &t, uint8_t *acts) { t.active(acts); })
            return +[](void *all, uint32_t i, uint8_t *acts) { of(all, i)->active(acts); };
        else return nullptr;
    }
    static constexpr auto render()
    {
        if constexpr (requires(const T &t) { t.render().size(); })
            return +[](void *all, uint32_t i, uint32_t, char *to, uint32_t cap) {
                std::string text = of(all, i)->render();
                if (cap >= text.size()) memcpy(to, text.data(), text.size());
                return (uint32_t)text.size();
            };
        else return nullptr;
    }

    static constexpr auto draw()
    {
        if constexpr (requires(const T &t, rl_picture *picture) { t.draw(picture); })
            return +[](void *all, uint32_t i, rl_picture *picture) { of(all, i)->draw(picture); };
        else return nullptr;
    }

    static constexpr bool serialised = !not_saved && !is_plain;
    static constexpr auto saver() -> void (*)(void *, uint32_t, uint8_t *)
    {
        if constexpr (not_saved) return RL_NOT_SAVED;
        else if constexpr (serialised) return save;
        else return nullptr;
    }
    static constexpr auto measurer() -> uint32_t (*)(void *, uint32_t)
    {
        if constexpr (serialised) return save_length;
        else return nullptr;
    }
    static constexpr auto loader() -> bool (*)(void *, uint32_t, const uint8_t *, uint32_t)
    {
        if constexpr (serialised) return load;
        else return nullptr;
    }
};

// RL_CLASS makes the environment out of the author's class; fields of rl_env follow.
#define RL_CLASS(Type, ...)                                                                                    \
    RL_VECTOR_ENV(__VA_ARGS__, .describe = rl_class<Type>::describe(), .mask = rl_class<Type>::mask(),         \
                  .active = rl_class<Type>::active(), .render = rl_class<Type>::render(),                      \
                  .draw = rl_class<Type>::draw(),                                                              \
                  .save = rl_class<Type>::saver(), .save_length = rl_class<Type>::measurer(),                  \
                  .load_length = rl_class<Type>::loader(), .create = rl_class<Type>::create,                   \
                  .destroy = rl_class<Type>::destroy, .reset = rl_class<Type>::reset,                          \
                  .step = rl_class<Type>::step, .struct_bytes = sizeof(Type))

#endif
