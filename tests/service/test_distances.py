"""What a scheduler knows about distances."""

from __future__ import annotations

from argosy.api.agent_values import ClusterPlace
from argosy.service.measured_distances import WITHIN, MeasuredDistances


def known(**round_trips: int) -> MeasuredDistances:
    distances = MeasuredDistances("home", {"rome<>paris": 9_000, "paris<>a": 1})
    for cluster, trip in round_trips.items():
        distances.learn(cluster, ClusterPlace(place=cluster), trip)
    return distances


def test_a_message_to_an_agent_takes_half_the_shortest_round_trip() -> None:
    distances = known(a=4_000)
    for trip in (3_000, 5_000):
        distances.learn("a", ClusterPlace(place="a"), trip)
    assert distances.between("home", "a") == distances.between("a", "home") == 1_500
    assert list(distances.measured()) == [("a", "a", 3_000)]


def test_only_the_last_eight_round_trips_count() -> None:
    distances = known(a=1_000)
    for _ in range(8):
        distances.learn("a", ClusterPlace(place="a"), 6_000)
    assert distances.between("home", "a") == 3_000


def test_the_way_between_two_agents_leads_over_the_scheduler() -> None:
    assert known(a=4_000, b=10_000).between("a", "b") == 7_000


def test_what_was_told_goes_before_what_was_measured() -> None:
    distances = known(a=4_000, paris=8_000)
    assert distances.between("a", "paris") == 1
    assert distances.between("paris", "rome") == 9_000
    assert distances.between("rome", "a") is None


def test_clusters_at_one_place_are_next_to_each_other() -> None:
    distances = known()
    for cluster, trip in (("a", 4_000), ("b", 3_000)):
        distances.learn(cluster, ClusterPlace(place="graz"), trip)
    assert distances.between("graz", "graz") == WITHIN
    assert distances.between("home", "graz") == 1_500


def test_a_cluster_that_has_moved_is_measured_anew() -> None:
    distances = known(a=1_000)
    distances.learn("a", ClusterPlace(place="linz", location="48.3,14.3"), 8_000)
    assert (distances.place_of("a"), distances.location_of("a")) == ("linz", "48.3,14.3")
    assert distances.between("home", "linz") == 4_000
    assert distances.between("home", "a") is None


def test_an_agent_is_told_all_that_is_known_around_it() -> None:
    assert known(a=4_000, b=10_000).around("a") == {
        "a": WITHIN,
        "b": 7_000,
        "home": 2_000,
        "paris": 1,
    }
    assert known().around("away") == {"away": WITHIN}
