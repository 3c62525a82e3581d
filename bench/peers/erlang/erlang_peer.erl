%% SPDX-License-Identifier: Apache-2.0
%% Erlang processes. With one scheduler (+S 1:1): ring, fan-in, calls and spawn, all of which are two
%% to five times slower with two. With two that spin (+S 2:2 +sbwt very_long): the ping-pong.
-module(erlang_peer).
-export([main/0]).

main() ->
    case erlang:system_info(schedulers_online) of
        1 ->
            report("erlang_ring_1k_hop_ns", ns_per_step(500000, fun ring/1)),
            report("erlang_fanin_100_rate_m", 1000 / ns_per_step(500000, fun fan_in/1)),
            report("erlang_calls_100_rate_m", 1000 / ns_per_step(300000, fun calls/1)),
            report("erlang_spawn_ns", ns_per_step(100000, fun spawn_many/1));
        _ ->
            report("erlang_pingpong_rtt_us", ns_per_step(50000, fun ping_pong/1) / 1000)
    end,
    halt().

report(Metric, Value) -> io:format("~s ~.4f~n", [Metric, float(Value)]).

%% The median time of three runs for each of N steps, in ns. Each run is a fresh process.
ns_per_step(N0, Run) ->
    N = case os:getenv("PEER_SECONDS") of
            false -> N0;
            S -> {F, _} = string:to_float(S ++ ".0"), max(100, round(N0 * F))
        end,
    Once = fun() ->
        {Pid, Ref} = spawn_opt(fun() ->
            T = erlang:monotonic_time(nanosecond),
            Run(N),
            exit({took, erlang:monotonic_time(nanosecond) - T})
        end, [monitor, {scheduler, 1}]),
        receive {'DOWN', Ref, process, Pid, {took, Ns}} -> Ns / N end
    end,
    Once(),
    lists:nth(2, lists:sort([Once(), Once(), Once()])).

%% A token goes around 1,000 processes.
ring(Hops) ->
    First = self(),
    Next = lists:foldl(fun(_, To) -> spawn(fun() -> relay(To) end) end, First, lists:seq(1, 999)),
    Next ! Hops,
    turn(Next),
    Next ! stop,
    receive stop -> ok end.

turn(Next) ->
    receive
        Left when Left > 0 -> Next ! Left - 1, turn(Next);
        _ -> ok
    end.

relay(Next) ->
    receive
        stop -> Next ! stop;
        0 -> Next ! 0, relay(Next);
        Left -> Next ! Left - 1, relay(Next)
    end.

%% 100 senders, one receiver.
fan_in(Messages) ->
    To = self(),
    [spawn(fun() -> flood(To, Messages div 100) end) || _ <- lists:seq(1, 100)],
    drain(Messages div 100 * 100).

flood(_, 0) -> ok;
flood(To, N) -> To ! N, flood(To, N - 1).

drain(0) -> ok;
drain(N) -> receive _ -> drain(N - 1) end.

%% 100 processes call one server, as gen_server:call does without its time-out and its formats.
calls(N) ->
    Parent = self(),
    Server = spawn_link(fun server/0),
    [spawn_link(fun() -> caller(Server, N div 100), Parent ! done end) || _ <- lists:seq(1, 100)],
    drain(100),
    Server ! stop.

server() ->
    receive
        {call, {Pid, Ref}, Value} -> Pid ! {Ref, Value + 1}, server();
        stop -> ok
    end.

caller(_, 0) -> ok;
caller(Server, N) ->
    Ref = make_ref(),
    Server ! {call, {self(), Ref}, N},
    receive {Ref, _} -> caller(Server, N - 1) end.

spawn_many(N) ->
    Pids = [spawn(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, N)],
    [P ! stop || P <- Pids].

%% Two processes bound to two schedulers, which the driver lets spin and binds to CPUs.
ping_pong(N) ->
    Other = spawn_opt(fun pong/0, [link, {scheduler, 2}]),
    ping(Other, N),
    Other ! stop.

ping(_, 0) -> ok;
ping(Other, N) -> Other ! {self(), N}, receive N -> ping(Other, N - 1) end.

pong() -> receive {From, N} -> From ! N, pong(); stop -> ok end.
