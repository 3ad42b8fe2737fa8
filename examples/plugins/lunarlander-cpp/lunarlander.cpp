// LunarLander of Gymnasium, version 3, on the Box2D that Gymnasium uses: the same moon, craft, engines, rewards and ends. Its random numbers
// are rlhost's. With continuous = true it is LunarLanderContinuous.
#include "rl_env.hpp"
#include "rl_math.h"

#include "box2d.h"

#include <algorithm>
#include <memory>

constexpr double FPS = 50, SCALE = 30; // pixels a metre; the craft is drawn in pixels
constexpr double WIDTH = 600 / SCALE, HEIGHT = 400 / SCALE, PAD = HEIGHT / 4;
constexpr double MAIN_POWER = 13, SIDE_POWER = 0.6, MAIN_Y = 4 / SCALE, SIDE_AWAY = 12 / SCALE, SIDE_HEIGHT = 14 / SCALE;
constexpr double LEG_AWAY = 20 / SCALE, LEG_DOWN = 18 / SCALE, LEG_WIDTH = 2 / SCALE, LEG_HEIGHT = 8 / SCALE;
constexpr float PUSH = 1000, LEG_TORQUE = 40; // the first push of the craft; the spring of a leg
constexpr int CHUNKS = 11, WIND_PERIODS = 9999;
constexpr uint32_t LIMIT = 1000; // steps
constexpr int PICTURE_WIDTH = 300, PICTURE_HEIGHT = 200, TEXT_COLUMNS = 60, TEXT_ROWS = 20;

static b2Vec2 vec(double x, double y) { return b2Vec2((float)x, (float)y); }

struct Options {
    bool continuous = false, wind = false;
    double gravity = -10, wind_power = 15, turbulence_power = 1.5;
};

// Engines are how far the engines are open, as the continuous action says it: the main one from 0 to 1, those at the sides from ±0.5 to ±1.
struct Engines {
    float main, side;
};

// Flight is an episode: all that happens follows from its seed and the engines of each step.
class Flight final : b2ContactListener {
    const Options options;
    rl_rng rng;
    b2World world;
    b2Body *moon, *craft, *legs[2];
    double ridge[CHUNKS]; // height of the moon at the ends of its pieces
    bool contact[2] = {}, crashed = false;
    double shaping = 0;
    int32_t wind = 0, torque = 0;

    void BeginContact(b2Contact *touch) override
    {
        const b2Body *a = touch->GetFixtureA()->GetBody(), *b = touch->GetFixtureB()->GetBody();
        crashed |= craft == a || craft == b;
        for (int i = 0; i < 2; i++) contact[i] |= legs[i] == a || legs[i] == b;
    }

    void EndContact(b2Contact *touch) override
    {
        const b2Body *a = touch->GetFixtureA()->GetBody(), *b = touch->GetFixtureB()->GetBody();
        for (int i = 0; i < 2; i++) contact[i] &= legs[i] != a && legs[i] != b;
    }

    void ground(double x1, double y1, double x2, double y2, float friction)
    {
        b2EdgeShape edge;
        edge.Set(vec(x1, y1), vec(x2, y2));
        b2FixtureDef fixture;
        fixture.shape = &edge;
        fixture.friction = friction;
        moon->CreateFixture(&fixture);
    }

    void make_moon()
    {
        double height[CHUNKS + 1], *smooth = ridge;
        for (double &y : height) y = rl_uniform(&rng, 0, (float)(HEIGHT / 2));
        std::fill_n(height + CHUNKS / 2 - 2, 5, PAD);
        for (int i = 0; i < CHUNKS; i++) smooth[i] = 0.33 * (height[i ? i - 1 : CHUNKS] + height[i] + height[i + 1]);
        b2BodyDef body;
        moon = world.CreateBody(&body);
        ground(0, 0, WIDTH, 0, 0.2f);
        for (int i = 0; i + 1 < CHUNKS; i++)
            ground(WIDTH / (CHUNKS - 1) * i, smooth[i], WIDTH / (CHUNKS - 1) * (i + 1), smooth[i + 1], 0.1f);
    }

    // make adds a body of one shape, which touches the moon alone.
    b2Body *make(double x, double angle, const b2Shape &shape, float density, float friction, uint16_t category)
    {
        b2BodyDef body;
        body.type = b2_dynamicBody;
        body.position = vec(x, HEIGHT);
        body.angle = (float)angle;
        b2FixtureDef fixture;
        fixture.shape = &shape;
        fixture.density = density;
        fixture.friction = friction;
        fixture.filter.categoryBits = category;
        fixture.filter.maskBits = 1;
        b2Body *made = world.CreateBody(&body);
        made->CreateFixture(&fixture);
        return made;
    }

    void make_craft()
    {
        static const b2Vec2 outline[] = {vec(-14 / SCALE, 17 / SCALE), vec(-17 / SCALE, 0),          vec(-17 / SCALE, -10 / SCALE),
                                         vec(17 / SCALE, -10 / SCALE), vec(17 / SCALE, 0), vec(14 / SCALE, 17 / SCALE)};
        b2PolygonShape hull;
        hull.Set(outline, 6);
        craft = make(WIDTH / 2, 0, hull, 5, 0.1f, 0x10);
        float x = rl_uniform(&rng, -PUSH, PUSH), y = rl_uniform(&rng, -PUSH, PUSH);
        craft->ApplyForceToCenter(b2Vec2(x, y), true);
    }

    void make_leg(int i)
    {
        double side = i ? 1 : -1;
        b2PolygonShape box;
        box.SetAsBox((float)LEG_WIDTH, (float)LEG_HEIGHT);
        legs[i] = make(WIDTH / 2 - side * LEG_AWAY, side * 0.05, box, 1, 0.2f, 0x20);
        b2RevoluteJointDef joint;
        joint.bodyA = craft;
        joint.bodyB = legs[i];
        joint.referenceAngle = legs[i]->GetAngle();
        joint.localAnchorB = vec(side * LEG_AWAY, LEG_DOWN);
        joint.enableMotor = joint.enableLimit = true;
        joint.maxMotorTorque = LEG_TORQUE;
        joint.motorSpeed = (float)(0.3 * side);
        joint.lowerAngle = (float)(i ? -0.9 : 0.9 - 0.5);
        joint.upperAngle = (float)(i ? -0.9 + 0.5 : 0.9);
        world.CreateJoint(&joint);
    }

    // gust is the wind's pull at a time, from -1 to 1; it has no period.
    static double gust(int32_t at) { return rl_tanh(rl_sin(0.02 * at) + rl_sin(RL_PI * 0.01 * at)); }

    void blow()
    {
        if (!options.wind || contact[0] || contact[1]) return;
        craft->ApplyForceToCenter(vec(gust(wind++) * options.wind_power, 0), true);
        craft->ApplyTorque((float)(gust(torque++) * options.turbulence_power), true);
    }

    // burn fires an engine, which stands at (x, y) from the craft's middle and pulls away from (ox, oy).
    void burn(double ox, double oy, double x, double y, double power)
    {
        b2Vec2 middle = craft->GetPosition();
        craft->ApplyLinearImpulse(vec(-ox * power, -oy * power), vec(middle.x + x, middle.y + y), true);
    }

    // fire opens the engines and returns what the fuel costs. Each is a little off its place.
    double fire(Engines engines)
    {
        double angle = craft->GetAngle(), sine = rl_sin(angle), cosine = rl_cos(angle), cost = 0;
        double along = rl_uniform(&rng, -1, 1) / SCALE, across = rl_uniform(&rng, -1, 1) / SCALE;
        if (engines.main > 0) {
            double power = (std::min((double)engines.main, 1.0) + 1) * 0.5, away = MAIN_Y + 2 * along;
            double ox = sine * away + -cosine * across, oy = -cosine * away - sine * across;
            burn(ox, oy, ox, oy, MAIN_POWER * power);
            cost += 0.3 * power;
        }
        if (rl_absf(engines.side) > 0.5f) {
            double power = std::min((double)rl_absf(engines.side), 1.0), away = 3 * across + (engines.side < 0 ? -SIDE_AWAY : SIDE_AWAY);
            double ox = sine * along + -cosine * away, oy = -cosine * along - sine * away;
            burn(ox, oy, ox - sine * 17 / SCALE, oy + cosine * SIDE_HEIGHT, SIDE_POWER * power); // Gymnasium's 17 is not its 14
            cost += 0.03 * power;
        }
        return cost;
    }

    static rl_point seen(b2Vec2 at)
    {
        return {at.x * (float)(PICTURE_WIDTH / WIDTH), (float)PICTURE_HEIGHT - at.y * (float)(PICTURE_HEIGHT / HEIGHT)};
    }

    static void paint(rl_picture *p, const b2Body *body, uint32_t colour)
    {
        const b2PolygonShape *shape = static_cast<const b2PolygonShape *>(body->GetFixtureList()->GetShape());
        rl_point outline[b2_maxPolygonVertices];
        int n = shape->GetVertexCount();
        for (int i = 0; i < n; i++) outline[i] = seen(body->GetWorldPoint(shape->GetVertex(i)));
        rl_draw_polygon(p, outline, (uint32_t)n, colour);
    }

    static int text_row(double height) { return rl_draw_pixel((float)((1 - height / HEIGHT) * TEXT_ROWS - 0.5), TEXT_ROWS - 1); }

    static void mark(std::string &lines, const b2Body *body, char as)
    {
        int column = rl_draw_pixel(body->GetPosition().x * (float)(TEXT_COLUMNS / WIDTH) - 0.5f, TEXT_COLUMNS - 1);
        lines[(size_t)(text_row(body->GetPosition().y) * (TEXT_COLUMNS + 1) + column)] = as;
    }

public:
    Flight(uint64_t seed, const Options &with) : options(with), rng(rl_seed(seed)), world(vec(0, with.gravity))
    {
        world.SetContactListener(this);
        make_moon();
        make_craft();
        if (options.wind) {
            wind = (int32_t)rl_below(&rng, 2 * WIND_PERIODS) - WIND_PERIODS;
            torque = (int32_t)rl_below(&rng, 2 * WIND_PERIODS) - WIND_PERIODS;
        }
        for (int i = 0; i < 2; i++) make_leg(i);
    }

    // draw paints what Gymnasium shows, at half its size, without the sparks of the engines.
    void draw(rl_picture *p) const
    {
        constexpr float each = PICTURE_WIDTH / (CHUNKS - 1);
        for (int i = 0; i + 1 < CHUNKS; i++) {
            rl_point left = seen(vec(0, ridge[i])), right = seen(vec(0, ridge[i + 1]));
            left.x = each * (float)i, right.x = left.x + each;
            const rl_point sky[] = {{left.x, 0}, {right.x, 0}, right, left};
            rl_draw_polygon(p, sky, 4, 0x10101c);
            const rl_point moon[] = {left, right, {right.x, PICTURE_HEIGHT}, {left.x, PICTURE_HEIGHT}};
            rl_draw_polygon(p, moon, 4, 0xe6e6e6);
        }
        for (int pole : {CHUNKS / 2 - 1, CHUNKS / 2 + 1}) {
            rl_point foot = seen(vec(0, PAD));
            foot.x = each * (float)pole;
            rl_draw_line(p, foot, {foot.x, foot.y - 25}, 1, 0xffffff);
            const rl_point flag[] = {{foot.x, foot.y - 25}, {foot.x, foot.y - 20}, {foot.x + 12, foot.y - 22}};
            rl_draw_polygon(p, flag, 3, 0xcccc00);
        }
        for (const b2Body *leg : legs) paint(p, leg, 0x8066e6);
        paint(p, craft, 0x8066e6);
    }

    // text shows the ground as #, the pad as =, the legs as the letter l and the middle of the craft as A.
    std::string text() const
    {
        std::string lines(TEXT_ROWS * (TEXT_COLUMNS + 1), ' ');
        for (int column = 0; column < TEXT_COLUMNS; column++) {
            double at = (column + 0.5) * (CHUNKS - 1) / TEXT_COLUMNS, part = at - (int)at;
            double height = ridge[(int)at] * (1 - part) + ridge[(int)at + 1] * part;
            bool pad = at > CHUNKS / 2 - 1 && at < CHUNKS / 2 + 1;
            for (int row = text_row(height); row < TEXT_ROWS; row++) lines[(size_t)(row * (TEXT_COLUMNS + 1) + column)] = pad ? '=' : '#';
        }
        for (int row = 0; row < TEXT_ROWS; row++) lines[(size_t)(row * (TEXT_COLUMNS + 1) + TEXT_COLUMNS)] = '\n';
        for (const b2Body *leg : legs) mark(lines, leg, 'l');
        mark(lines, craft, 'A');
        return lines;
    }

    void step(Engines engines, float *obs, rl_result &out)
    {
        blow();
        double cost = fire(engines);
        world.Step((float)(1 / FPS), 180, 60);
        b2Vec2 at = craft->GetPosition(), speed = craft->GetLinearVelocity();
        double x = (at.x - WIDTH / 2) / (WIDTH / 2), y = (at.y - (PAD + LEG_DOWN)) / (HEIGHT / 2);
        double vx = speed.x * (WIDTH / 2) / FPS, vy = speed.y * (HEIGHT / 2) / FPS, angle = craft->GetAngle();
        const double state[] = {x, y, vx, vy, angle, 20.0 * craft->GetAngularVelocity() / FPS, (double)contact[0], (double)contact[1]};
        std::copy_n(state, 8, obs);
        double before = shaping;
        shaping = -100 * rl_sqrt(x * x + y * y) - 100 * rl_sqrt(vx * vx + vy * vy) - 100 * rl_abs(angle) + 10 * contact[0] + 10 * contact[1];
        bool lost = crashed || rl_abs(x) >= 1, rests = !craft->IsAwake();
        out.terminated = lost || rests;
        out.reward = rests ? 100 : lost ? -100 : (float)(shaping - before - cost);
    }
};

RL_PARTLY static const rl_space thrusts = RL_BOX(RL_F32, -1, 1, 2); RL_WHOLLY

// LunarLander saves an episode as its seed and the engines so far, and loads it by flying it again: a world of Box2D is full of pointers.
class LunarLander {
    Options options;
    uint64_t seed = 0;
    std::vector<Engines> flown;
    std::unique_ptr<Flight> flight;

    void begin(uint64_t with, float *obs)
    {
        rl_result none = {};
        seed = with;
        flown.clear();
        flight.reset(); // before the next one, for its memory
        flight = std::make_unique<Flight>(seed, options);
        flight->step(Engines{0, 0}, obs, none);
    }

    void fly(Engines engines, float *obs, rl_result &out)
    {
        flown.push_back(engines);
        flight->step(engines, obs, out);
        out.truncated = flown.size() >= LIMIT;
    }

public:
    LunarLander() = default;
    LunarLander(const LunarLander &other) : options(other.options) {}
    LunarLander &operator=(LunarLander &&) = default;

    static bool spaces(rl_config *config, rl_env *env)
    {
        if (!rl_arg_bool(config, "continuous", false)) return true;
        env->action = thrusts;
        env->keys = "none=0,0\nleft=0,-1\nup=1,0\nright=0,1";
        return true;
    }

    bool setup(rl_config *config)
    {
        options.continuous = rl_arg_bool(config, "continuous", options.continuous);
        options.gravity = rl_arg_f64(config, "gravity", options.gravity);
        options.wind = rl_arg_bool(config, "enable_wind", options.wind);
        options.wind_power = rl_arg_f64(config, "wind_power", options.wind_power);
        options.turbulence_power = rl_arg_f64(config, "turbulence_power", options.turbulence_power);
        flown.reserve(LIMIT);
        return true;
    }

    void reset(rl_rng &rng, float *obs) { begin(rl_next(&rng), obs); }

    void step(rl_rng &, const void *action, float *obs, rl_result &out)
    {
        static const Engines choices[] = {{0, 0}, {0, -1}, {1, 0}, {0, 1}};
        fly(options.continuous ? *(const Engines *)action : choices[*(const int32_t *)action], obs, out);
    }

    void draw(rl_picture *picture) const
    {
        if (flight) flight->draw(picture);
    }

    std::string render() const { return flight ? flight->text() : ""; }

    std::vector<uint8_t> save() const
    {
        std::vector<uint8_t> bytes(sizeof seed + flown.size() * sizeof(Engines));
        memcpy(bytes.data(), &seed, sizeof seed);
        memcpy(bytes.data() + sizeof seed, flown.data(), flown.size() * sizeof(Engines));
        return bytes;
    }

    bool load(const uint8_t *from, uint32_t len)
    {
        float obs[8];
        uint64_t with;
        if (len < sizeof with || (len - sizeof with) % sizeof(Engines) || (len - sizeof with) / sizeof(Engines) > LIMIT) return false;
        memcpy(&with, from, sizeof with);
        begin(with, obs);
        for (const uint8_t *at = from + sizeof with; at < from + len; at += sizeof(Engines)) {
            Engines engines;
            rl_result none = {};
            memcpy(&engines, at, sizeof engines);
            fly(engines, obs, none);
        }
        return true;
    }
};

static const rl_argument arguments[] = {
    {"continuous", "the engines are two numbers from -1 to 1", RL_ARG_BOOL, "false", 0, 0, nullptr, RL_ARG_AFFECTS_SPACES},
    {"gravity", "metres a second squared", RL_ARG_NUMBER, "-10", -12, 0, nullptr, 0},
    {"enable_wind", "wind pushes the craft until it stands", RL_ARG_BOOL, "false", 0, 0, nullptr, 0},
    {"wind_power", "strongest push of the wind", RL_ARG_NUMBER, "15", 0, 20, nullptr, 0},
    {"turbulence_power", "strongest turn by the wind", RL_ARG_NUMBER, "1.5", 0, 2, nullptr, 0},
};

static const float most[] = {2.5f, 2.5f, 10, 10, (float)(2 * RL_PI), 10, 1, 1};
static const float least[] = {-2.5f, -2.5f, -10, -10, (float)(-2 * RL_PI), -10, 0, 0};

RL_CLASS(LunarLander, .name = "lunarlander@3", .action = RL_DISCRETE(4),
         .obs = {.dtype = RL_F32, .rank = 1, .shape = {8}, .lows = least, .highs = most}, RL_ARGUMENTS(arguments), .episode_limit = LIMIT,
         .dt = (float)(1 / FPS), .picture_width = PICTURE_WIDTH, .picture_height = PICTURE_HEIGHT, .picture_fps = FPS,
         .keys = "none=0\nleft=1\nup=2\nright=3")
