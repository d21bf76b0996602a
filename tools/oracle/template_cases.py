#!/usr/bin/env python3
"""Writes the goldens of the template tests with Jinja2 itself, in the environment that transformers builds.

    python3 tools/oracle/template_cases.py FIXTURES      (needs jinja2 3.1)

tests/golden/text/template_cases.json    [source, result] pairs; a result of null means that Jinja2 raises or prints an address
tests/golden/text/template_renderings.txt  template, context, BLAKE2b-128 of the rendering in hexadecimal, or "raises"
"""
import datetime, glob, hashlib, json, os, sys

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

GOLDEN = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "golden", "text")


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_run"), [], [], body).set_lineno(line)

    def _run(self, caller):
        return caller()


def to_json(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    e = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    e.filters["tojson"] = to_json
    e.globals["raise_exception"] = raise_exception
    e.globals["strftime_now"] = lambda f: datetime.datetime(2026, 11, 29).strftime(f)
    return e


def render(source, context):
    try:
        text = environment().from_string(source).render(**context)
    except Exception:
        return None
    return None if " at 0x" in text or any(v in text for v in ("dict_items(", "dict_keys(", "dict_values(")) else text  # which Rondo refuses to print


CONTEXT = {
    "s": "Hello", "t": "  pad\t\n", "u": "Ünïcødé ß 漢字 😀", "q": "it's \"quoted\" <b>&amp;</b>", "n": 7, "neg": -3, "f": 1.5, "big": 1e20,
    "small": 1e-7, "one": 1.0, "yes": True, "no": False, "nil": None, "l": [3, 1, 2], "e": [], "m": {"b": 1, "a": {"c": [1, 2.0, None, True]}, "items": 5},
    "words": ["Pear", "apple", "Fig", "apple"], "rows": [{"k": "x", "v": 2}, {"k": "y", "v": 1}, {"k": "X"}], "lines": "one\n\n  two\nthree",
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}],
}

EXPRESSIONS = """
1 + 2 * 3 ** 2
-2**2
-3|abs
'a' ~ 1 + 2
'a' ~ 1 ~ none
(1, 2)
(1,)
()
[1, 'x', none, 1.0, (2,)]
{'a': 1, 'b': [true, 'it\\'s']}
7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 / 2
1 == 1.0 == true
1 < 2 < 3 and not 3 < 2
1 is defined == true
s is not string, not s is string
x is defined, x is undefined, x == none, x is none, x is iterable, x is sequence
x
x ~ 'a'
x.y
x + 1
x < 1
x|length
x|tojson
x|default('d'), ''|default('d'), ''|default('d', true), nil|default('d')
nil, yes, no, n, f, big, small, one, 1e16, 1e15, 0.0001, 0.00001, 123456789012345680.0, 1e22, 0.1, 100.0, 1.5e300
nil.foo
nil.foo.bar
n.foo
m.items
m['items']
m.get('b'), m.get('z'), m.get('z', 9)
m.a.c[1], m['a']['c'][-1], m.a.c[9]
m.b, m.zzz
l.0, l[0], l[-1]
l[1:], l[:1], l[::-1], l[:], l[-2:], l[5:], l[::2], l[2:0:-1]
s[1:3], s[::-1], s[-1], s[99]
u[2:5], u|length, u|upper, u|lower
u[0], u[-1]
q
[q]
[t, 'a\\nb', 'back\\\\slash', '\\x07']
t|trim ~ '|', t.strip() ~ '|', t.rstrip() ~ '|', t.lstrip() ~ '|'
'xxaxx'.strip('x'), 'abcba'.lstrip('ab'), 'abc'.rstrip('bc')
'a,b,,c'.split(','), 'a,b,c'.split(',', 1), ' a  b c '.split(), ' a  b c '.split(none, 1), 'a,b,c'.rsplit(',', 1)
'a'.split('')
lines.splitlines(), lines.split('\\n')
'hello world'.title(), "it's me"|title, "it's".title(), 'hELLO'|capitalize, 'hELLO'.capitalize()
'abc'.startswith('a'), 'abc'.startswith(('x', 'ab')), 'abc'.endswith('bc'), 'abc'.endswith('x')
'abcabc'.replace('b', 'X'), 'abcabc'.replace('b', 'X', 1), 'abc'|replace('a', 'z'), 'aaa'|replace('a', 'b', 2), 'ab'.replace('', '-')
'abc'.find('c'), 'abc'.find('z'), 'abcb'.count('b'), 'abc'.index('b')
'abc'.index('z')
'prefix-x'.removeprefix('prefix-'), 'x.txt'.removesuffix('.txt')
'12'.isdigit(), 'a1'.isdigit(), ''.isdigit(), 'ab'.isalpha(), ' '.isspace()
'-'.join(['a', 'b']), l|join(', '), rows|join('/', attribute='k')
'-'.join([1])
'{} {1}'.format(1, 2)
'{} {}'.format('a', 1), '{a}-{a}'.format(a='x'), '{0}{1}{0}'.format(1, 2), '{{}}'.format()
'%s and %d' % ('a', 3), '%s' % 'x', '%05d|%.2f|%%' % (42, 1.005), '%r' % 'x'
'%s' % (1, 2)
'%s %s'|format('a', 'b')
'ab' * 3, 2 * [1], [1] * 0
'a' + 1
'a' + none
[1] + [2], (1,) + (2,)
[1] + (2,)
'a' in 'cat', 'z' in 'cat', 1 in l, 9 not in l, 'b' in m, 'z' in x
1 in nil
1 in 'a1'
'1' < 2
[1, 2] < [1, 3], 'a' < 'b', 'B' < 'a'
[1, [2]] == [1, [2]], {'a': 1} == {'a': 1.0}, (1,) == [1], 'a' == 1
l|sort, l|sort(reverse=true), words|sort, words|sort(case_sensitive=true), rows|sort(attribute='v')|map(attribute='k')|list
rows[:2]|sort(attribute='v')|map(attribute='k')|list
m|dictsort
{'b': 1, 'A': 2, 'c': 0}|dictsort, {'b': 1, 'A': 2}|dictsort(true), {'b': 1, 'A': 2}|dictsort(by='value', reverse=true)
words|unique|list, l|first, l|last, e|first, l|sum, l|min, l|max, words|min, rows[:2]|sum(attribute='v')
words|map('upper')|list, rows|map(attribute='v')|list, rows|map(attribute='v', default=0)|list, [m]|map(attribute='a.c.0')|list
rows|selectattr('v')|list|length, rows|selectattr('v', 'equalto', 1)|list, rows|rejectattr('v', 'defined')|list, rows|selectattr('k', 'in', ['x', 'y'])|map(attribute='k')|join
l|select('odd')|list, l|reject('odd')|list, [0, 1, '']|select|list, nil|map('upper')|list, nil|select|list
l|select('odd')
words|map('nosuchfilter')|list
l|reverse|list, 'abc'|reverse, l|batch(2)|list, [1, 2, 3]|batch(2, 'x')|list
nil|list
nil|join
nil|trim, nil|upper, 12|string ~ 'x', yes|string
5|length
m|items|list, m|list, s|list, x|list, x|items|list
m|length, l|count, ''|length
'12.7'|int, '12'|int, 'x'|int, 'x'|int(5), nil|int, 3.9|int, ' 7 '|int, '1.5'|float, 'x'|float, 'x'|float(2.5), 3|float, yes|int
2.5|round, 3.456|round(2), 7|round, -3|abs, -3.5|abs, 0.5|round, 1.25|round(1)
lines|indent, lines|indent(2, true), lines|indent(2, false, true), 'a\\n'|indent, lines|indent('>> ')
'a b  c'|wordcount
q|e, q|escape
(q|safe) + '<x>', '<x>' + (q|safe), (q|safe) ~ '<x>', ('<b>'|safe)[0:2], ('<b>'|safe)|upper, ['<i>', '<b>'|safe]|join('<')
('<b>'|safe).replace('b', '<'), ('-'|safe).join(['<', '>'|safe]), '<%s>'|safe
m|tojson, l|tojson, q|tojson, u|tojson, u|tojson(ensure_ascii=true), nil|tojson, 1.0|tojson, 1e20|tojson, true|tojson, (1, 2)|tojson
m|tojson(indent=2)
m|tojson(indent=2, sort_keys=true), [[], {}]|tojson(indent=4), m|tojson(separators=(',', ':')), {'b': 1, 'a': 2}|tojson(sort_keys=true)
{1: 2, true: 3, none: 4}|tojson
'\\x01\\x1f\\x7f\\u2028/<>&\\'"\\\\\\b\\f\\n\\r\\t'|tojson
'a' 'b', "x\\ty", 'a\\qb', '\\u00e9\\x41\\101'
0x1f, 0o17, 0b101, 1_000, 1.5e3, 1e3
'yes' if n > 5 else 'no', 'a' if false, ('a' if false) is undefined, 1 if yes else 2 if no else 3
range(3)|list, range(1, 4)|list, range(5, 0, -2)|list, range(0)|list
range(200000)|list
dict(a=1, b=2), dict({'x': 1}, y=2)
n is odd, n is even, 6 is divisibleby 3, n is divisibleby(3), n is number, f is float, n is integer, yes is integer, yes is boolean, yes is true, no is false, 1 is true
s is string, l is sequence, m is mapping, l is iterable, n is iterable, s is iterable, m is sequence, l|map('upper') is iterable
n is eq 7, n is ne 7, n is lt 8, n is ge(7), n is in [1, 7], n is sameas n, range is callable, s is callable
'abc' is lower, 'ABC' is upper, 'aBc' is lower
s is nosuchtest
s|nosuchfilter
s.__class__
s.nosuch()
l.append(1)
m.update({})
m.keys()|list, m.values()|list|length, m.items()|list|length, m.items()|length
m.items()
[[1, 2], [3]]|sum(start=[])
{'a': 1}.a, {'a': {'b': 2}}.a.b, [1, 2][1], 'abc'[1], (1, 2)[0]
not yes or no and yes, not (yes and no)
1 if x else 2, yes and 'v', no or 'w', nil or e or 'last'
true and True, false or False, none is none, None is none
strftime_now('%Y-%m-%d'), strftime_now('%d %b %Y'), strftime_now('%d %B %Y'), strftime_now('%A %a %j %y %H:%M')
raise_exception('stop')
loop
namespace(a=1).a
l.index(2), words.count('apple')
words|join(' ')|lower|title
s|first, s|last, s[0]|upper
'' == x, x != 1
1.0 == 1, '1' == 1, nil == false, 0 == false
{'a': 1}['b'] is defined, {'a': 1}.b|default('no')
messages[0]['role'] == 'user' and messages[0].content
messages|map(attribute='role')|join(','), (messages|last).content, messages[-1].role
messages[1:]|length, messages|selectattr('role', 'equalto', 'user')|list|length
words|map('replace', 'a', 'b')|list, words|map('length')|sum
0.1 + 0.2, 1 / 3, 2 / 1, 1e308 * 10, 3.0 * 2
l|slice(2)|list
[1,2,3,4,5]|slice(3)|list, [1,2,3,4,5]|slice(3, 'x')|list
rows|groupby('v')
rows[:2]|groupby('v')|list
words|groupby(0)|map('first')|list
q|xmlattr
s is escaped, ('a'|safe) is escaped
'upper' is filter, 'nosuch' is filter, 'odd' is test, 'x' is test
1/0
1 % 0
'a,b'.split(sep=','), 'a,b,c'.split(',', maxsplit=1), 'a\\n\\nb'.splitlines(true), 'a\\x0bb\\x0cc\\x1cd\\u2028e'.splitlines()
l.copy(), m.copy()
l.sort()
l.pop()
l.count(1), (1,2).index(2), (1,2,1).count(1)
m.pop('a')
m.setdefault('a', 1)
m.keys(), m.values()
dict(m), dict([('a',1)]), dict([['x',2]], z=3)
[*l]
'a' if yes else 'b' ~ 'c'
l[::-1][0], l[-1:], l[1:2:1], l[None:2], l[10:20], l[-10:2], s[:-1], s[::2]
l[0:3:0]
l['a']
m[l]
{'a':1}['a'], {1:'x'}[1], {1:'x'}[1.0], {true:'x'}[1]
'abc' * -1, 'ab' * true
true + true, true * 3, -true, +true, +n, not n
1 < 2 > 1 == true, 1 in [1] == true, not 1 == 2
'a' < 'B', 'a' < 'á', [] < [0], (1,'a') < (1,'b')
nil < 1
l|sort(attribute='x')
words|sort(true), words|sort(reverse=true, case_sensitive=true)
rows|sort(attribute='k,v')|list
rows[:2]|sort(attribute='v,k')|map(attribute='k')|list
l|min, words|max, words|max(true), rows[:2]|max(attribute='v'), e|min
l|first, m|first, s|first, e|first is undefined, nil|first
[1,2,3]|last, m|last, 'abc'|last, (1,2)|last, l|map('string')|last
e|sum, [0.1,0.2]|sum, ['a']|sum
[[1],[2]]|sum(start=[]), ['a','b']|sum(start='')
[1,true,'1',1.0]|unique|list, ['a','A']|unique(true)|list, rows|unique(attribute='k')|list
[3,1]|reverse|list, m|reverse|list, (1,2)|reverse|list
5|reverse
words|join, words|join('-', attribute=0), [1,none,true]|join(','), m|join(','), 'abc'|join('-'), x|join
words|map('first')|join, words|map(attribute=0)|list, [[1,2],[3,4]]|map(attribute=1)|list, words|map('default','x')|list
l|map('odd')|list
words|select('in', ['Fig'])|list, l|select('gt', 1)|list, l|select('>', 1)|list, l|reject('equalto', 1)|list, words|select('string')|list, l|select('divisibleby', 3)|list
rows|selectattr('v', 'gt', 1)|list
rows[:2]|selectattr('v', 'gt', 1)|list
rows|selectattr('v', 'undefined')|list, rows|rejectattr('v')|list
m|items, m|items|list, m|dictsort(false, 'value')
{'a': 2, 'b': 1}|dictsort(by='value'), {'a': 2, 'b': 1}|dictsort(reverse=true)
{'a': 2}|dictsort(by='x')
m|attr('b'), m|attr('zz'), s|attr('upper')
s|attr('upper')()
q|e|e, q|escape|upper, q|e|length, (q|e) ~ q, q|e + q
'a'|default, x|default, x|default(true), ''|d('z', boolean=true), x|default(default_value='q')
'abc'|indent(2), lines|indent(first=true), lines|indent(width=1, blank=true)
1e22|string, 1e16|string, 123456789.123|string, 5e-324, 1.7976931348623157e308, 0.1+0.7, -0.0, 1e5, 100000.0*1e11
'' is string, x is string, nil is string, x is mapping, m.items() is mapping, (1,) is sequence, m.items() is sequence, range(3) is sequence, l|map('upper') is sequence, dict is callable, nil is iterable, 1.0 is integer, true is number, true is integer, true is float
x is defined, x.y is defined
x[0] is defined
nil.y is defined, m.zz is defined, m.zz.y is defined
nil is sameas none, true is sameas true, s is sameas s, 1 is sameas 1.0
1 is divisibleby 0
3 is odd and 4 is even, 'a' is odd
'a' is in 'abc', 1 is in l, 'q' is in m, 1 is not in l
s is not none and s is not undefined
m is eq m, l is ne e, 1 is lessthan 2, 2 is greaterthan 1, 2 is ==2
1 is ==1
tojson
m|tojson(ensure_ascii=false, indent=4), m|tojson(2)
'\\x7f\\u200b😀'|tojson(true)
l|map('string')|tojson
m.items()|tojson
range(3)|tojson
(1,'a',none)|tojson, [true,1.5,-0.0,1e16,1e-7]|tojson, {'a':{}}|tojson(indent=1)
x.y|tojson
m|tojson|length, (m|tojson)[0], m|tojson is string, m|tojson + 'x', '<'|tojson + '<'
namespace()|tojson
""".strip().split("\n")

TEMPLATES = [
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for x in l if x > 1 %}{{ loop.index }}/{{ loop.length }}={{ x }} {% endfor %}",
    "{% for x in e %}a{% else %}none{% endfor %}{% for x in nosuch %}a{% else %}undef{% endfor %}",
    "{% for k, v in m.items() %}{{ k }}={{ v }};{% endfor %}{% for k in m %}{{ k }}{% endfor %}",
    "{% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% endfor %}",
    "{% for x in l %}a{{ x }}{% if x == 1 %}b{% continue %}{% endif %}c{% endfor %}",
    "{% set v = 1 %}{% for x in l %}{{ v }}{% set v = x %}{{ v }}{% endfor %}{{ v }}",
    "{% for x in l %}{% if loop.first %}{% set once = 1 %}{% endif %}{{ once is defined }}{% endfor %}",
    "{% if yes %}{% set leak = 1 %}{% endif %}{{ leak }}",
    "{% set ns = namespace(a=1, l=[]) %}{% for x in l %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }}",
    "{% set m.b = 2 %}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = (3, 4) %}{{ c }}{{ d }}",
    "{% set block %}x{{ n }}\n{% endset %}[{{ block }}]{% set up | upper %}abc{% endset %}{{ up }}",
    "{% macro f(a, b=2, c='z') %}{{ a }}{{ b }}{{ c }}|{% endmacro %}{{ f(1) }}{{ f(1, c='y') }}{{ f(b=5, a=4) }}{{ f() }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(z=2) }}",
    "{% macro fact(n) %}{% if n <= 1 %}1{% else %}{{ n * fact(n - 1)|int }}{% endif %}{% endmacro %}{{ fact(6) }}",
    "{% set g = 'top' %}{% macro f() %}{{ g }}{% endmacro %}{% set g = 'later' %}{{ f() }}{{ f()|upper }}",
    "{% for x in l %}{% macro f() %}{{ x }}{% endmacro %}{{ f() }}{% endfor %}",
    "{% macro box(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call box('b') %}in {{ n }}{% endcall %}",
    "{% macro each(l) %}{% for x in l %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(y) each(l) %}({{ y }}){% endcall %}",
    "{% filter upper %}abc{{ s }}{% endfilter %}{% filter replace('a', 'b')|trim %} aa {% endfilter %}",
    "{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}{{ loop is defined }}",
    "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.cycle('a', 'b') }}{{ loop.depth }}{% endfor %}",
    "  {% if yes %}\n  a\n  {% endif %}\n  b\n",
    "  {%- if yes -%}\n  a\n  {%- endif -%}\n  b\n\n",
    "a  {#- c -#}  b {# x\ny #}\n c\n{# z #}\nd",
    "a\n    {%+ if yes %}b{% endif +%}\nc",
    "{{ 'a' }}\n{{- 'b' -}}\n c {{ 'd' }} \n",
    "x {% raw %}{{ not }} {% if %}{% endraw %} y",
    "a\n  {% raw -%}  {{ x }}  {%- endraw %}\nb",
    "line1\r\nline2\rline3\n",
    "{{ {'a': {'b': 1}}['a']['b'] }}{{ {} }}{{ {'x': {}} }}",
    "{% if no %}a{% elif nil %}b{% elif n == 7 %}c{% else %}d{% endif %}",
    "{% if x %}a{% endif %}{% if x is defined and x.y %}b{% endif %}c",
    "{% for m in messages %}{{ m.role }}:{% generation %}{{ m.content }}{% endgeneration %}\n{% endfor %}",
    "{%- for m in messages -%}\n  {%- generation -%} {{ m.content }} {%- endgeneration -%}\n{%- endfor -%}",
    "{% for c in 'hé' %}[{{ c }}]{% endfor %}{% for c in 5 %}{% endfor %}",
    "{% for x in nil %}{% endfor %}",
    "{{ 1", "{% if %}", "{% endif %}", "{% if yes %}", "{{ }}", "{{ 'a }}", "{# x", "{% for %}", "{{ a b }}", "{% set x %}", "{{ (1 }}", "{{ 1 } }}", "{% raw %}x", "{{ ] }}",
    "{% include 'x' %}", "{% unknown %}", "{% break %}", "{{ a..b }}", "{{ 1 is }}", "{{ 'a' | }}",
    "{% for x in l %}{% endfor %}ok",
    "{%- set items = ['a', 'b'] -%}{{ items[0] }}{{ items|join }}",
    "{% if 'x' in m and m['x'] %}{% else %}no{% endif %}",
    "{{ messages[0].content.split('i')[0] }}{{ (messages[0].content | trim).split('h')[-1] }}",
    "{% set first = messages[0] %}{% set rest = messages[1:] %}{{ first.role }}{% for m in rest %}{{ m.role }}{% endfor %}",
    "{{ '\\n' }}{{ \"a\nb\" }}",
    "{%if yes%}a{%endif%}{{n}}{{-n-}}",
    "{% set x = namespace() %}{% set x.y = 1 %}{{ x.y }}{{ x.z is defined }}",
    "{% for k, v in {'b': 1, 'a': 2}|dictsort %}{{ k }}{{ v }}{% endfor %}",
    "{% for x in l|sort %}{{ x }}{{ ', ' if not loop.last }}{% endfor %}",
    "{% macro t(v) %}{% if v is mapping %}{{ '{' }}{% for k, w in v.items() %}{{ k }}:{{ t(w) }}{% if not loop.last %},{% endif %}{% endfor %}{{ '}' }}{% elif v is iterable and v is not string %}[{% for w in v %}{{ t(w) }}{% endfor %}]{% else %}{{ v|tojson }}{% endif %}{% endmacro %}{{ t({'a': [1, 'x'], 'b': {'c': none}}) }}",
    "{% for k, items in rows[:2]|groupby('k') %}x{% endfor %}",
    "{% for k, v in words|groupby('0') %}{{k}}={{v|join(',')}};{% endfor %}",
    "{% for g in rows|groupby('k', default='d') %}{{g.grouper}}={{g.list|length}};{% endfor %}",
    "{% for g in rows[:2]|groupby(attribute='k') %}{{g.grouper}}={{g.list|length}}{{ g[0] }};{% endfor %}",
    "{% for x in l recursive %}{{ x }}{% endfor %}",
    "{% for x in [[1,[2]],[3]] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}@{{ loop.depth }}{{ loop.depth0 }}{% endif %}{% endfor %}",
    "{% macro f(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1,2,3,z=4) }}",
    "{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f.name }}{{ f.arguments }}{{ f.catch_kwargs }}{{ f.caller }}",
    "{% with a=1, b=2 %}{{ a }}{{ b }}{% endwith %}",
    "{% do l %}",
    "{% set ns = namespace(x=[]) %}{% set ns.x = ns.x + [1] %}{{ ns.x }}{% set ns.y %}blk{% endset %}{{ ns.y }}",
    "{% for i in range(3) %}{% for j in range(2) %}{{ loop.index }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}{{ loop.depth0 }}{% endfor %}",
    "{% for x in l %}{{ loop.nosuch is defined }}{% endfor %}",
    "{% for x in l %}{{ loop['index'] }}{{ loop.cycle('o','e') }}{% endfor %}",
    "{% for x in l if loop.index > 1 %}{% endfor %}",
    "{% for x in l|reverse %}{{ loop.length }}{{ loop.revindex }}{{ loop.last }}{{ x }}{% endfor %}",
    "{% for x in l|map('string') %}{{ loop.length }}{{ loop.last }}{{ loop.nextitem }}{% endfor %}",
    "{% for a, (b, c) in [[1,[2,3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a in l %}{% else %}x{% endfor %}{% for k, v in m|dictsort %}{{ k }}{% endfor %}",
    "{% for x in m %}{{ x }}={{ m[x] }};{% endfor %}",
    "{% for x in l %}{% set y = x %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% else %}none{% endfor %}",
    "{% for x in e %}{% else %}{% set z=1 %}{{ z }}{% endfor %}{{ z }}",
    "{% set x %}a{% if yes %}b{% endif %}{% endset %}{{ x|length }}{{ x|upper }}",
    "{% set a = b = 1 %}",
    "{% set a, b = 'xy' %}{{ a }}{{ b }}",
    "{% set a = 1, 2 %}{{ a }}",
    "{% if l %}y{% elif x %}n{% endif %}{% if not e %}z{% endif %}{% if nil is none %}n{% endif %}",
    "{% macro a() %}{% macro b() %}in{% endmacro %}{{ b() }}{% endmacro %}{{ a() }}{{ b is defined }}",
    "{% macro a(x) -%}\n  {{ x }}\n{%- endmacro %}[{{ a('v') }}][{{ a('v')|upper }}][{{ a('<')|e }}]",
    "{% macro a(x) %}{{ caller is defined }}{% endmacro %}{{ a(1) }}",
    "{% macro a(x) %}{{ caller() }}{% endmacro %}{{ a(1) }}",
    "{% macro a(x=[]) %}{{ x }}{% endmacro %}{{ a() }}{{ a([1]) }}{{ a(x=none) }}",
    "{% macro m2(k) %}{% for x in k %}{% if x is iterable and x is not string %}{{ m2(x) }}{% else %}{{ x }}{% endif %}{% endfor %}{% endmacro %}{{ m2([1,[2,[3]]]) }}",
    "{% call(a, b=2) f() %}{% endcall %}",
    "{% filter indent(2) %}a\nb{% endfilter %}|{% filter trim|upper %} x {% endfilter %}",
    "{# comment {{ x }} #}a{#- b -#}  c",
    "a {%- if yes %} b {%- endif %} c",
    "  {%- set x = 1 %}\n  y",
    "{% if yes %}\n\n x\n{% endif %}\n\n",
    "{% raw %}{{ a }}{% endraw %}{{- n -}} x",
    "{%- raw -%}  {{ a }} {%- endraw -%}  b",
    "{{ '{{' }}{{ \"}}\" }}{{ '%}' }}",
    "{{ {'a': {'b': 1}} }}{{ {} }}",
    "{% if messages[0]['role'] == 'user' %}u{% endif %}{{ messages[0].get('nope', 'd') }}",
    "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('x') }}{% endif %}{{ message.content|trim }}{% endfor %}",
    "{{ messages|map(attribute='content')|join }}{{ messages|selectattr('role','equalto','user')|map(attribute='content')|first }}",
    "{% generation %}a{% endgeneration %}b{%- generation -%} c {%- endgeneration -%} d",
    "{% trans %}x{% endtrans %}",
    "{% import 'x' as y %}",
    "{% debug %}",
    "{% for x in range(3) -%} {{ x }} {%- endfor +%}\n z",
    "{{ 'a'\n 'b' }}\n{{ 1 }}{# x #}\n{{ 2 }}",
    "\n\n{{ n }}\n\n",
    "{%+ if yes %}a{% endif %}",
    "x\n   {#- c #}\n   y",
    "{{- n }}{{ n -}}\n z",
    "{{ u }}\u00a0{%- if yes %}z{% endif -%}\u00a0y",
    "{{ l[0] if l else 'none' }}{{ (l|length) ~ '' }}{{ l|length + 1 }}{{ -l|length }}",
    "{{ 'a' ~ 1 + 2 }}",
    "{{ 5 is number and 'x' }}{{ 5 is not number }}{{ (5 is number) == true }}",
    "{{ x if x is defined }}{{ (x if x is defined) is undefined }}",
    "{{ x.y if x is defined else 'no' }}",
    "{% set a = namespace(v=false) %}{% for i in l %}{% if i==1 %}{% set a.v = true %}{% endif %}{% endfor %}{{ a.v }}",
    "{{ 1_0 }}{{ 1.5_5 }}{{ 1e-3 }}{{ 0xFF }}{{ 1.e3 }}",
    "{{ 1.foo }}",
    "{{ 'x'.__class__ }}{{ ''.__class__.__mro__ }}",
    "{{ messages.append(1) }}",
    "{{ dict.__init__ }}",
    "{{ range(3)|sum }}{{ range(3)|max }}",
    "{{ '\\x41\\u00e9\\U0001F600\\101\\q\\\n' }}",
    "{{ raise_exception() }}",
    "{{ raise_exception(1) }}",
    "{{ strftime_now('%d/%m/%y %H:%M:%S %p %I %U %W %w %u %e %B %-d %Y%%') }}",
    "{{ strftime_now('%c') }}",
    "{{ strftime_now(\"%Y-%m-%dT%H:%M:%S\") }}",
    "{% set tools = tools if tools is defined else none %}{{ tools is none }}",
    "{{ ['a','b']|join('\n') }}{{ 'a\nb'.split('\n')|length }}",
    "{{ (messages|last)['role'] }}{{ messages[-1]['content'][:1] }}{{ messages[::-1][0].role }}{{ messages[:-1]|length }}",
    "{%- for m in messages[::-1] -%}{{ loop.index0 }}{{ m.role }}{{ messages|length - 1 - loop.index0 }}{%- endfor -%}",
    "{{ 'x' in messages[0] }}{{ 'role' in messages[0] }}{{ messages[0] is mapping }}{{ messages[0].items()|list }}",
    "{{ 'a' 'b' ~ 'c' }}{{ ('a','b')|join }}{{ ('a')|join }}{{ ('a',)|first }}",
    "{{ none|string }}{{ none ~ 'x' }}{{ [none] }}",
    "{{ {'a': none}|tojson }}{{ {'k': x}|length }}",
    "{{ {'k': x}|tojson }}",
    "{{ '%s' % none }}{{ '%d' % 3.7 }}{{ '%s %s' % ('a', [1]) }}{{ '%s' % [1] }}",
    "{{ '%d' % 'a' }}",
    "{{ 'a%' % () }}",
    "{{ '%s %s' % 'a' }}",
    "{{ 'a' % 1 }}",
]


def parsed(context):
    """Arguments as objects, as the caller of a template prepares them."""
    for message in context["messages"]:
        for call in message.get("tool_calls") or []:
            function = call.get("function") or {}
            if isinstance(function.get("arguments"), str):
                function["arguments"] = json.loads(function["arguments"])
    return context


def main():
    cases = [["{{ %s }}" % e, render("{{ %s }}" % e, CONTEXT)] for e in EXPRESSIONS] + [[t, render(t, CONTEXT)] for t in TEMPLATES]
    with open(os.path.join(GOLDEN, "template_cases.json"), "w") as out:
        json.dump({"context": CONTEXT, "cases": cases}, out, ensure_ascii=False, indent=0)
        out.write("\n")
    fixtures = sys.argv[1]
    contexts = sorted(glob.glob(fixtures + "/contexts/*.json")) + [os.path.join(GOLDEN, n) for n in ("calls.json", "thinking.json")]
    with open(os.path.join(GOLDEN, "template_renderings.txt"), "w") as out:
        for template in sorted(glob.glob(fixtures + "/templates/*.jinja")):
            for context in contexts:
                text = render(open(template, newline="").read(), parsed(json.load(open(context))))
                digest = "raises" if text is None else hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
                out.write("%s %s %s\n" % (os.path.basename(template), os.path.basename(context), digest))


main()
