"""Seeds and worlds that once found something, each with what it found.

Seeds stay, although a later world draws another scenario from the same number: what they guard as scenarios is in the directed
tests of the parts that were mended. Worlds are what `--minimise` left of a seed: they do not change with what is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from tests.simulation.faults.broker_faults import calm_broker
from tests.simulation.faults.group_faults import calm_group
from tests.simulation.faults.launcher_faults import calm_launcher
from tests.simulation.faults.node_faults import Trouble, calm_nodes
from tests.simulation.faults.store_faults import calm_store
from tests.simulation.faults.topic_faults import calm_topics
from tests.simulation.runner.swarm import Burst, Swarm


@dataclass(frozen=True, slots=True)
class KeptWorld:
    """A minimised world, and the seed with which it failed."""

    seed: int
    swarm: Swarm


REGRESSION_SEEDS: dict[int, str] = {
    3: "an `at` schedule fired again after an update; a message came back to life after its replacement",
    4: "two events further apart than the time-out were counted together, and paired",
    6: "a create behind the end of what was loaded was passed by a checkpoint while it was not written: lost after a crash",
    8: "two owners made timer rows of one message at different slots, and a third sent both",
    11: "rows whose load got no answer were passed by a checkpoint: lost",
    15: "an actor that was drained while it took over had sent messages and wrote no checkpoint",
    19: "a drain cut a decision that was reading",
    20: "a message that may have been sent was moved to a retry slot and then answered as cancelled",
    22: "retry rows of one message, taken together, stayed open for ever and stopped the checkpoint",
    24: "a read of the inbox that began before a row's end brought the row again",
    25: "rows of a former owner outlived the refusal of their create: one message under two ids",
    29: "a transaction of deletes alone, applied without an answer, was never settled",
    35: "a timer row was loaded before its message row was there, and the replay of its create left it closed: lost",
    37: "a former owner's delete hid an inbox row from the present one: a message was lost",
    38: "a drain emptied the lane under a decision's feet",
    73: "two generations of a schedule in the index made one inbox row twice; a planned hand-over while no load was answered",
    86: "a message was replaced while its payload was read for sending, and sent all the same",
    96: "a replaced message was sent by a group that was under way",
    100: "a time-out fell before its time by the broker's clock, on a node whose clock was ahead",
    116: "a look-up of a key's versions saw one page of them: a late repeat replaced younger messages",
    205: "the sender of a replacement was told `superseded` by an earlier repeat of the same request",
    304: "a message that became ready during a drain kept the last checkpoint from passing what was sent",
    5507: "a cancel by key, done again after a crash, was too late because of a version that was delivered long ago",
    5555: "the same, with KIP-848 and an events topic that is made anew",
    131: "a cancel that was written twice was answered not_found, and its message stayed held back for ever",
    352: "late rows of a create that was refused, because its repeat had been accepted before, were sent as well",
    597: "the map had grown: a message was sent whose inbox row was not dealt with, because its record lay in what was its owner's own topic partition now",
    710009: "a hand-over was called orderly although a fire without acknowledgement held the position up: a later one was sent again",
    800274: "the judge took a run that a constraint let go for a later one than those that were forced at the same instant",
    800496: "the judge objected to what a node that had been frozen decided as the store fell silent",
    801025: "the judge wanted what was missed in an outage before what was due",
    801065: "groups that ended in one step began a checkpoint each, and their owner took itself for fenced",
    801070: "a cancel that waited for the store was answered too_late, although it had taken its message back",
    801136: "a former owner put an overdue message at another slot after it was sent, and its cancel was answered cancelled",
    802214: "late index rows of a record that came to nothing replaced those of its repeat: no event was counted",
    802331: "the judge wanted fires of a shard whose held messages got no answer for long, so that it stood at the bound",
    810403: "the judge wanted a fire behind a backlog at once, and a flood through an inbox to be over in five minutes",
    745083: "the judge wanted a message that expires, while faults aimed at the position that its create waited for",
    739355: "a late row of a former owner was passed by no checkpoint: after an orderly hand-over its message was sent again",
    300301: "a replacement fell behind its guard, a younger record was accepted first: what it replaced stayed held for ever",
    950065: "behind an outage late data were looked for in hundreds of instances of driver: time: more than the lane's view holds",
    267: "a repeat was dealt with, and the record that it repeats went with the topic that was made anew: nobody sent the message",
    8700409: "a repeat became the first record of its request, but was refused for good before: the next repeat was another message",
    20000002: "a coordinator that came back put members out at once, whose proof of membership it had just heard",
    20000085: "what each of two hours' ticks needed was read by itself: requests behind them waited for 17 min",
    20000551: "the judge gave a fire 4 s behind tries of others that nobody answered, two of which take longer",
    20040666: "a platform's word that one artefact was gone ended the run whose gate the next one had passed meanwhile",
    20041398: "the same, of an attempt that was submitted twice",
    20042222: "the same, behind a gate that was away",
    20040311: "a repeat was answered before the rows of its request were there, and a cancel did not find them",
    20041069: "the judge wanted a message that had expired before its inbox row could be there: the store took 1.5 s a batch",
    20040937: "the judge took two jobs of one millisecond for made in the order of their ids, and a reminder for early",
    20041210: "behind as many open instances as may be, an event that was read late was nobody's, not the next tick's",
    20041197: "the judge counted four within no span: one was decided before the others and written after them",
    20300852: "the judge took the 4 s in which an owner at I8's bound waited for a checkpoint, and sent nothing, for more that was repeated",
    20300904: "a process took over again what it had lost: its beat between two acquires hid the outage of the shards to come",
    20340626: "a hand-over sent what it had taken before, behind a row that waited for the log, and waited for nothing",
    20340700: "a guard outlived the replacement that raised it and went with its topic, and covered a record of it that was passed",
    20400727: "the judge, and the audit, took what a cancelled job of several stood for as a part of the span of another one",
    20411135: "the newest took the place of ten of eleven that waited, and went before the eleventh, which ran behind it",
    20500047: "a former owner, frozen within a resume, wrote its row of the index anew with a later instant: a start was not counted",
    20501535: "a run whose owner's clock was ahead outlived a suspend in which that fell: its successor's clock stood before it was made",
    20502306: "a message that had arrived without an acknowledgement was refused, moved to a later slot, and answered as cancelled by a successor",
    20503125: "the judge wanted a message that expired behind a backlog whose answers a lossy broker took 40 s to acknowledge",
    20502503: "the judge wanted a reminder while a reader that was told nothing read on in a source's topic that was made anew",
    20521099: "an admission of unknown fate had removed what its void asked, and its run was never launched",
    20520205: "the judge wanted messages of an owner whose guard settled behind a freeze, which with KIP-848 takes longer than a pause",
    20510393: "four schedules' instants of hours, five a transaction of a store of 200 ms, took longer than the world had to come to rest",
    20540896: "the judge wanted the repeat of an event whose topic was made anew when half of its schedules had it",
    20612852: "the judge wanted a reminder in a lane that faults kept for 17 s from the fate of the transaction before it",
    8000120: "each decision on two hours of ticks waited anew for what nobody had read: one in a slow store's every round",
    20706011: "what waited for a tick was given up with one read late, which a tick that had passed would have taken",
    20900263: "a rate forgot an admission whose run had ended, behind a forced one that was taken back",
    21005092: "an overdue message beyond what was loaded, behind an outage, was taken for sent: its cancel was answered too_late",
    21008016: "the judge wanted a time-out to wait for what a frozen reader still had of an events topic that was made anew",
    21008803: "the judge gave an owner whose guard had not settled behind a freeze, which with KIP-848 takes longer, time for a checkpoint",
    22003963: "a world was taken to be at rest while a message that had been refused four times waited for its fifth attempt",
    23005214: "the judge wanted a reminder to wait for what a frozen reader still had of an events topic that was made anew",
    23016754: "a fire that was no more than late was taken while the gap was written that it lay in: what followed on it there was not sent",
    23021419: "the judge took for missed what was made between two outages, and waited until the second one had gone on with the first",
    24006336: "a late copy of the rows of a record that went with its topic replaced those of its repeat there: its cancel said not_found",
    26003268: "a message waited for records behind its own, whose transactions had no answer, and expired meanwhile",
    28004696: "of two that found out what was read, the one that began first came last, and what was in time waited again: a pair was expired",
    28005635: "the same, behind a leaderless topic partition",
    27000317: "an event that had come amid an earlier one of two suspensions, and was read late, had the clock of after it: a pair was expired",
    28005238: "the judge wanted a dead letter that was open when its topic went, which a successor closed that could not read it",
    28005297: "a hold that had ended in an outage was ended only behind all that was missed since, which it parked as its own",
    28005735: "each repeat of what was answered had a slow store read twice: behind an outage they came as fast as they were dealt with",
    29003670: "a request held a schedule whose fire stood before a message that was sent, amid a hand-over: the message was sent again",
    29003975: "events behind a deadline waited five minutes for what was unread of a topic that had been made anew",
    32004570: "who had not heard of the next map sent a recurring message's older version behind the update's answer by its new owner",
    31002277: "a program that was asked to end as it waited at the gate's answer died with its run, of which no other host could tell",
    33000291: "a copy of an admission that a full limit had refused was carried out when it had a slot: an update did not end that run",
    35004834: "a run that its node kept from the launcher was given up as not taken: the look at it had stood in its lane since before that",
    36002631: "programs on hosts of their own passed the gate unheard, and gave up before a silent store and a gate that was away were back",
    36005156: "the judge wanted a reminder's empty job beside one of the version before, which an update with finish_old had let wait on",
    36008165: "the judge took a rejection for known that two owners had heard who fell, and the third as the run's time was over",
    36009541: "the judge knew of no delete that had ended what an upstream's had left: its owner had fallen, and a user's came meanwhile",
    36013978: "a refused message of the version before, whose rows were on their way, hid that this one had sent an `at`: sent once more",
    36011685: "the judge wanted a dead letter of a run that had timed out as often as it may, and that somebody had asked to end",
    36014828: "the judge gave an owner time to send that had none: the group waited for a member that was gone, and guards lapsed",
    37000009: "the judge wanted an owner to know of the outage that its successor had found a millisecond before it gave up a job",
    37001785: "the judge of repeats gave an owner time for a checkpoint that had none: the group waited for a member that was gone",
    37013397: "the judge of recurring messages did not count what the broker had refused for sent behind a position that stood",
    37024173: "a simulated rebalance waited for a frozen member for less than a real one, and put it out while its guard held",
    38007438: "the judge held what attempt 1 had reported against the end of attempt 2, whose start came late and was never heard of",
    38011371: "the judge did not know the pending time-out of a version before, which the job that stands for its jobs has taken over",
    38020290: "the judge of ticks did not see that the clock stood still between an event that waited for one and that tick",
    38024439: "a run was lost, came back and was lost again: the second row in an inbox had the key of the first, which was known as gone",
    39007764: "the judge took a reminder for one of the resume: its owner's clock was ahead of the answer to the suspend behind it",
    39009083: "the judge of repeats let a position pass messages whose records had got no answer twice, until their owner froze",
    39016627: "what the events topic grew by while a holder took it over was looked for a minute after that, and not after it had been told of",
    39023072: "the judge of recurring messages gave a fire time while a request held it, whose lane was kept from a transaction's fate",
    39025030: "a suspension ended by itself, and what had come amid it where no end was told of counted if it came after the suspend's record",
    40021415: "the judge wanted a reminder's empty job beside one of the version before, which was made as the update was on its way",
    7000235: "messages that were late behind the end of a suspension had one place, and the first of them alone was sent",
}

REGRESSION_WORLDS: Final[Mapping[str, KeptWorld]] = {
    "a commit right after a freeze was taken for proof of membership, which with KIP-848 it does not keep": KeptWorld(
        1,
        Swarm(
            nodes=3,
            topic_partitions=8,
            event_topic_partitions=4,
            shards=9,
            busy_ms=80_000,
            store=calm_store(),
            broker=calm_broker(),
            node=replace(calm_nodes(), trouble=(Trouble(68_000, "pause", 11_477),)),
            launcher=calm_launcher(),
            group=replace(calm_group(), protocol="consumer", late_heartbeat_ms=4_000),
            topics=calm_topics(),
            bursts=(Burst(224, (1_000, 8_000), (12_000, 80_000)),),
        ),
    ),
}
"""By what each of them found."""
