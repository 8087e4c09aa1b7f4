"""Labelled patterns on a forum, each in three languages: ours, SQL on integers, and Cypher.

`sql` is over native tables of DuckDB, named as the schema names them, in snake case; `friends` is
`knows` in both directions. Every order is total, so that a limit cuts the same rows for everyone.
"""

from typing import Final

from benchmarks.questions import Question

QUESTIONS: Final = {
    "1": Question(
        "a chain: comments from one country on posts of one tag",
        """query q() {
          match { $n: Country {name: "Country 3"}  $c cityIn $n  $p livesIn $c  $m commentBy $p
                  $m replyOf $o  $o postTag $t  $t: Tag {name: "Tag 4"} }
          return { count($m) as comments } }""",
        """SELECT count(*) FROM country n JOIN city_in ci ON ci.dst = n.number
           JOIN lives_in l ON l.dst = ci.src JOIN comment_by m ON m.dst = l.src
           JOIN reply_of r ON r.src = m.src JOIN post_tag pt ON pt.src = r.dst
           JOIN tag t ON t.number = pt.dst
           WHERE n.name = 'Country 3' AND t.name = 'Tag 4'""",
        """MATCH (n:Country)<-[:CityIn]-(c:City)<-[:LivesIn]-(p:Person)<-[:CommentBy]-(m:Comment)
                 -[:ReplyOf]->(o:Post)-[:PostTag]->(t:Tag)
           WHERE n.name = 'Country 3' AND t.name = 'Tag 4' RETURN count(*) AS comments""",
    ),
    "2": Question(
        "a chain with three branches: replies in forums, by the author's country",
        """query q() {
          match { $f: Forum  $f.number < 400  $f holds $o  $o postBy $p  $p livesIn $c  $c cityIn $n
                  $o postTag $t  $t.number < 100  $m replyOf $o }
          return { $n.name as country, count($m) as replies }
          order { replies desc, country } limit 5 }""",
        """SELECT n.name, count(*) AS replies FROM holds h JOIN post_by b ON b.src = h.dst
           JOIN lives_in l ON l.src = b.dst JOIN city_in ci ON ci.src = l.dst
           JOIN country n ON n.number = ci.dst JOIN post_tag pt ON pt.src = h.dst
           JOIN reply_of r ON r.dst = h.dst WHERE h.src < 400 AND pt.dst < 100
           GROUP BY n.name ORDER BY replies DESC, n.name LIMIT 5""",
        """MATCH (f:Forum)-[:Holds]->(o:Post)-[:PostBy]->(p:Person)-[:LivesIn]->(c:City)
                 -[:CityIn]->(n:Country), (o:Post)-[:PostTag]->(t:Tag),
                 (m:Comment)-[:ReplyOf]->(o:Post)
           WHERE f.number < 400 AND t.number < 100
           RETURN n.name AS country, count(*) AS replies ORDER BY replies DESC, country LIMIT 5""",
    ),
    "3": Question(
        "a chain of seven hops: which country answers which",
        """query q() {
          match { $a livesIn $c  $c cityIn $n  $m commentBy $a  $m replyOf $o  $o postBy $b
                  $b livesIn $d  $d cityIn $k }
          return { $n.name as from_country, $k.name as to_country, count($m) as comments }
          order { comments desc, from_country, to_country } limit 10 }""",
        """SELECT n.name, k.name, count(*) AS comments FROM comment_by m
           JOIN lives_in l ON l.src = m.dst JOIN city_in ci ON ci.src = l.dst
           JOIN country n ON n.number = ci.dst JOIN reply_of r ON r.src = m.src
           JOIN post_by b ON b.src = r.dst JOIN lives_in v ON v.src = b.dst
           JOIN city_in vi ON vi.src = v.dst JOIN country k ON k.number = vi.dst
           GROUP BY n.name, k.name ORDER BY comments DESC, n.name, k.name LIMIT 10""",
        """MATCH (n:Country)<-[:CityIn]-(c:City)<-[:LivesIn]-(a:Person)<-[:CommentBy]-(m:Comment)
                 -[:ReplyOf]->(o:Post)-[:PostBy]->(b:Person)-[:LivesIn]->(d:City)
                 -[:CityIn]->(k:Country)
           RETURN n.name AS from_country, k.name AS to_country, count(*) AS comments
           ORDER BY comments DESC, from_country, to_country LIMIT 10""",
    ),
    "4": Question(
        "triangles of friends, either way",
        """query q() {
          match { $a: Person  $a <knows> $b  $b <knows> $c  $a <knows> $c }
          return { count($a) as triangles } }""",
        """SELECT count(*) FROM friends x JOIN friends y ON y.src = x.dst
           JOIN friends z ON z.src = x.src AND z.dst = y.dst""",
        """MATCH (a:Person)-[:Knows]-(b:Person)-[:Knows]-(c:Person), (a:Person)-[:Knows]-(c:Person)
           RETURN count(*) AS triangles""",
    ),
    "5": Question(
        "friends who share an interest, by interest",
        """query q() {
          match { $a <knows> $b  $a hasInterest $t  $b hasInterest $t }
          return { $t.name as tag, count($a) as pairs } order { pairs desc, tag } limit 5 }""",
        """SELECT t.name, count(*) AS pairs FROM friends k JOIN has_interest i ON i.src = k.src
           JOIN has_interest j ON j.src = k.dst AND j.dst = i.dst JOIN tag t ON t.number = i.dst
           GROUP BY t.name ORDER BY pairs DESC, t.name LIMIT 5""",
        """MATCH (a:Person)-[:Knows]-(b:Person), (a:Person)-[:HasInterest]->(t:Tag),
                 (b:Person)-[:HasInterest]->(t:Tag)
           RETURN t.name AS tag, count(*) AS pairs ORDER BY pairs DESC, tag LIMIT 5""",
    ),
    "6": Question(
        "members who like a post of their forum, by forum",
        """query q() {
          match { $f hasMember $p  $f holds $o  $p likes $o }
          return { $f.name as forum, count($o) as likes } order { likes desc, forum } limit 5 }""",
        """SELECT f.name, count(*) AS likes FROM has_member m JOIN likes k ON k.src = m.dst
           JOIN holds h ON h.src = m.src AND h.dst = k.dst JOIN forum f ON f.number = m.src
           GROUP BY f.name ORDER BY likes DESC, f.name LIMIT 5""",
        """MATCH (f:Forum)-[:HasMember]->(p:Person)-[:Likes]->(o:Post), (f:Forum)-[:Holds]->(o:Post)
           RETURN f.name AS forum, count(*) AS likes ORDER BY likes DESC, forum LIMIT 5""",
    ),
    "7": Question(
        "comments on the post of a friend: a cycle of four",
        """query q() {
          match { $m commentBy $a  $m replyOf $o  $o postBy $b  $a <knows> $b }
          return { count($m) as comments } }""",
        """SELECT count(*) FROM comment_by m JOIN reply_of r ON r.src = m.src
           JOIN post_by b ON b.src = r.dst JOIN friends k ON k.src = m.dst AND k.dst = b.dst""",
        """MATCH (a:Person)<-[:CommentBy]-(m:Comment)-[:ReplyOf]->(o:Post)-[:PostBy]->(b:Person),
                 (a:Person)-[:Knows]-(b:Person)
           RETURN count(*) AS comments""",
    ),
    "8": Question(
        "friends of friends who are not friends, of one country",
        """query q() {
          match { $n: Country {name: "Country 2"}  $h cityIn $n  $a livesIn $h
                  $a <knows> $b  $b <knows> $c  $a.number != $c.number  not { $a <knows> $c } }
          return { count($c) as paths } }""",
        """SELECT count(*) FROM country n JOIN city_in ci ON ci.dst = n.number
           JOIN lives_in l ON l.dst = ci.src JOIN friends x ON x.src = l.src
           JOIN friends y ON y.src = x.dst
           WHERE n.name = 'Country 2' AND y.dst <> x.src AND NOT EXISTS (
             SELECT 1 FROM friends z WHERE z.src = x.src AND z.dst = y.dst)""",
        """MATCH (n:Country)<-[:CityIn]-(h:City)<-[:LivesIn]-(a:Person)
                 -[:Knows]-(b:Person)-[:Knows]-(c:Person)
           WHERE n.name = 'Country 2' AND a.number <> c.number
             AND NOT EXISTS { MATCH (a:Person)-[:Knows]-(c:Person) }
           RETURN count(*) AS paths""",
    ),
    "9": Question(
        "members who posted nothing in their forum",
        """query q() {
          match { $f hasMember $p  not { $f holds $o  $o postBy $p } }
          return { count($p) as members } }""",
        """SELECT count(*) FROM has_member m WHERE NOT EXISTS (
             SELECT 1 FROM holds h JOIN post_by b ON b.src = h.dst
             WHERE h.src = m.src AND b.dst = m.dst)""",
        """MATCH (f:Forum)-[:HasMember]->(p:Person)
           WHERE NOT EXISTS { MATCH (f)-[:Holds]->(:Post)-[:PostBy]->(p) }
           RETURN count(*) AS members""",
    ),
    "10": Question(
        "a star around posts: likes, replies and tags",
        """query q() {
          match { $o: Post  $l likes $o  $m replyOf $o  $o postTag $t }
          return { count($o) as combinations } }""",
        """SELECT count(*) FROM likes l JOIN reply_of r ON r.dst = l.dst
           JOIN post_tag t ON t.src = l.dst""",
        """MATCH (l:Person)-[:Likes]->(o:Post)<-[:ReplyOf]-(m:Comment), (o:Post)-[:PostTag]->(t:Tag)
           RETURN count(*) AS combinations""",
    ),
    "11": Question(
        "a star around people: friends, forums and interests, by interest",
        """query q() {
          match { $p: Person {gender: "female"}  $p.born > 1990  $p <knows> $q  $f hasMember $p
                  $p hasInterest $t }
          return { $t.name as tag, count($q) as combinations }
          order { combinations desc, tag } limit 5 }""",
        """SELECT t.name, count(*) AS combinations FROM person p JOIN friends k ON k.src = p.number
           JOIN has_member m ON m.dst = p.number JOIN has_interest i ON i.src = p.number
           JOIN tag t ON t.number = i.dst WHERE p.gender = 'female' AND p.born > 1990
           GROUP BY t.name ORDER BY combinations DESC, t.name LIMIT 5""",
        """MATCH (p:Person)-[:Knows]-(q:Person), (f:Forum)-[:HasMember]->(p:Person),
                 (p:Person)-[:HasInterest]->(t:Tag)
           WHERE p.gender = 'female' AND p.born > 1990
           RETURN t.name AS tag, count(*) AS combinations
           ORDER BY combinations DESC, tag LIMIT 5""",
    ),
    "12": Question(
        "two hops either way, by the years of birth on the way",
        """query q() {
          match { $a: Person  $a <knows> $b  $b <knows> $c  $b.born < 1970  $c.born > 1960 }
          return { count($c) as paths } }""",
        """SELECT count(*) FROM friends x JOIN person b ON b.number = x.dst
           JOIN friends y ON y.src = x.dst JOIN person c ON c.number = y.dst
           WHERE b.born < 1970 AND c.born > 1960""",
        """MATCH (a:Person)-[:Knows]-(b:Person)-[:Knows]-(c:Person)
           WHERE b.born < 1970 AND c.born > 1960 RETURN count(*) AS paths""",
    ),
}
