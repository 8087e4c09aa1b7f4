"""The nine questions, each in three languages: ours, the SQL one would write, and Cypher.

They follow the set that studies of embedded graph databases use: who is followed most, who lives
where and likes what, and how many paths of two hops there are. Every order is total, so that a
limit cuts the same rows for everyone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from benchmarks.rounds import Answer


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `sql` is over tables named as the schema names them, in snake case."""

    title: str
    gq: str
    sql: str
    cypher: str


Asker = Callable[[str, Question], Answer]
"""Answers a question, which has this number."""

_PLACE_SQL: Final = """\
JOIN lives_in l ON l.src = p.id JOIN city c ON c.id = l.dst
JOIN city_in ci ON ci.src = c.id JOIN state s ON s.id = ci.dst
JOIN state_in si ON si.src = s.id JOIN country n ON n.id = si.dst"""

_LIKES_SQL: Final = "JOIN has_interest h ON h.src = p.id JOIN interest i ON i.id = h.dst"

QUESTIONS: Final = {
    "1": Question(
        "the three most followed",
        """query q() {
          match { $f: Person  $f follows $p }
          return { $p.id as person, $p.name as name, count($f) as followers }
          order { followers desc, person } limit 3 }""",
        """WITH top AS (SELECT dst, count(*) AS followers FROM follows
                        GROUP BY dst ORDER BY followers DESC, dst LIMIT 3)
           SELECT dst, name, followers FROM top JOIN person p ON p.id = dst
           ORDER BY followers DESC, dst""",
        """MATCH (f:Person)-[:Follows]->(p:Person)
           RETURN p.id AS person, p.name AS name, count(*) AS followers
           ORDER BY followers DESC, person LIMIT 3""",
    ),
    "2": Question(
        "the city of the most followed",
        """query q() {
          match { $f: Person  $f follows $p  $p livesIn $c  $c cityIn $s  $s stateIn $n }
          return { $p.id as person, count($f) as followers,
                   $c.name as city, $s.name as state, $n.name as country }
          order { followers desc, person } limit 1 }""",
        f"""WITH top AS (SELECT dst AS id, count(*) AS followers FROM follows
                         GROUP BY dst ORDER BY followers DESC, dst LIMIT 1)
            SELECT p.id, followers, c.name, s.name, n.name FROM top p {_PLACE_SQL}""",
        """MATCH (f:Person)-[:Follows]->(p:Person)
           WITH p, count(*) AS followers ORDER BY followers DESC, p.id LIMIT 1
           MATCH (p)-[:LivesIn]->(c:City)-[:CityIn]->(s:State)-[:StateIn]->(n:Country)
           RETURN p.id AS person, followers, c.name AS city, s.name AS state, n.name AS country""",
    ),
    "3": Question(
        "the five youngest cities of a country",
        """query q() {
          match { $n: Country {name: "United States"}
                  $s stateIn $n  $c cityIn $s  $p livesIn $c }
          return { $c.id as id, $c.name as city, avg($p.age) as age }
          order { age, id } limit 5 }""",
        f"""SELECT c.id, c.name, avg(p.age) AS age FROM person p {_PLACE_SQL}
            WHERE n.name = 'United States' GROUP BY c.id, c.name ORDER BY age, c.id LIMIT 5""",
        """MATCH (p:Person)-[:LivesIn]->(c:City)-[:CityIn]->(s:State)-[:StateIn]->(n:Country)
           WHERE n.name = 'United States'
           RETURN c.id AS id, c.name AS city, avg(p.age) AS age ORDER BY age, id LIMIT 5""",
    ),
    "4": Question(
        "people of 30 to 40 by country",
        """query q() {
          match { $p: Person  $p.age >= 30  $p.age <= 40
                  $p livesIn $c  $c cityIn $s  $s stateIn $n }
          return { $n.name as country, count($p) as people }
          order { people desc, country } limit 3 }""",
        f"""SELECT n.name, count(*) AS people FROM person p {_PLACE_SQL}
            WHERE p.age BETWEEN 30 AND 40 GROUP BY n.name ORDER BY people DESC, n.name LIMIT 3""",
        """MATCH (p:Person)-[:LivesIn]->(c:City)-[:CityIn]->(s:State)-[:StateIn]->(n:Country)
           WHERE p.age >= 30 AND p.age <= 40
           RETURN n.name AS country, count(*) AS people
           ORDER BY people DESC, country LIMIT 3""",
    ),
    "5": Question(
        "men of one city who like fine dining",
        """query q() {
          match { $p: Person {gender: "male"}  $p hasInterest $i  $i: Interest {name: "Fine Dining"}
                  $p livesIn $c  $c: City {name: "City 7"} }
          return { count($p) as people } }""",
        f"""SELECT count(*) FROM person p {_LIKES_SQL}
            JOIN lives_in l ON l.src = p.id JOIN city c ON c.id = l.dst
            WHERE p.gender = 'male' AND i.name = 'Fine Dining' AND c.name = 'City 7'""",
        """MATCH (p:Person)-[:HasInterest]->(i:Interest), (p)-[:LivesIn]->(c:City)
           WHERE p.gender = 'male' AND i.name = 'Fine Dining' AND c.name = 'City 7'
           RETURN count(*) AS people""",
    ),
    "6": Question(
        "cities with most women who like tennis",
        """query q() {
          match { $p: Person {gender: "female"}  $p hasInterest $i  $i: Interest {name: "Tennis"}
                  $p livesIn $c }
          return { $c.id as id, $c.name as city, count($p) as people }
          order { people desc, id } limit 5 }""",
        f"""SELECT c.id, c.name, count(*) AS people FROM person p {_LIKES_SQL}
            JOIN lives_in l ON l.src = p.id JOIN city c ON c.id = l.dst
            WHERE p.gender = 'female' AND i.name = 'Tennis'
            GROUP BY c.id, c.name ORDER BY people DESC, c.id LIMIT 5""",
        """MATCH (p:Person)-[:HasInterest]->(i:Interest), (p)-[:LivesIn]->(c:City)
           WHERE p.gender = 'female' AND i.name = 'Tennis'
           RETURN c.id AS id, c.name AS city, count(*) AS people
           ORDER BY people DESC, id LIMIT 5""",
    ),
    "7": Question(
        "the state with most 23 to 30 who like photography",
        """query q() {
          match { $p: Person  $p.age >= 23  $p.age <= 30
                  $p hasInterest $i  $i: Interest {name: "Photography"}
                  $p livesIn $c  $c cityIn $s  $s stateIn $n  $n: Country {name: "United States"} }
          return { $s.id as id, $s.name as state, count($p) as people }
          order { people desc, id } limit 1 }""",
        f"""SELECT s.id, s.name, count(*) AS people FROM person p {_LIKES_SQL} {_PLACE_SQL}
            WHERE p.age BETWEEN 23 AND 30 AND i.name = 'Photography' AND n.name = 'United States'
            GROUP BY s.id, s.name ORDER BY people DESC, s.id LIMIT 1""",
        """MATCH (p:Person)-[:LivesIn]->(c:City)-[:CityIn]->(s:State)-[:StateIn]->(n:Country),
                 (p)-[:HasInterest]->(i:Interest)
           WHERE p.age >= 23 AND p.age <= 30
             AND i.name = 'Photography' AND n.name = 'United States'
           RETURN s.id AS id, s.name AS state, count(*) AS people
           ORDER BY people DESC, id LIMIT 1""",
    ),
    "8": Question(
        "paths of two hops",
        """query q() {
          match { $a: Person  $a follows $b  $b follows $c } return { count($c) as paths } }""",
        "SELECT count(*) FROM follows f JOIN follows g ON g.src = f.dst",
        """MATCH (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person)
           RETURN count(*) AS paths""",
    ),
    "9": Question(
        "paths of two hops, by the ages on the way",
        """query q() {
          match { $a: Person  $a follows $b  $b follows $c  $b.age < 50  $c.age > 25 }
          return { count($c) as paths } }""",
        """SELECT count(*) FROM follows f JOIN person b ON b.id = f.dst
           JOIN follows g ON g.src = b.id JOIN person c ON c.id = g.dst
           WHERE b.age < 50 AND c.age > 25""",
        """MATCH (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person)
           WHERE b.age < 50 AND c.age > 25 RETURN count(*) AS paths""",
    ),
}
