"""`python -m tests.chaos`: see __init__."""
import argparse, asyncio, sys
from collections import Counter
from tests.chaos.plan import Plan
from tests.chaos.records import FaultKind
from tests.chaos.run import run

p=argparse.ArgumentParser(); p.add_argument("--exchanges",type=int,default=1000); p.add_argument("--seed",type=int,default=1)
p.add_argument("--kinds",default=",".join(FaultKind)); p.add_argument("--mcp",type=float,default=0.1); p.add_argument("--pause",type=float,default=2.0)
o=p.parse_args()
out=asyncio.run(run(Plan(o.exchanges,o.seed,kinds=frozenset(FaultKind(k) for k in o.kinds.split(",") if k),mcp_share=o.mcp,pause=o.pause), lambda t: print(t,file=sys.stderr,flush=True)))
j=out.judgement
print(Counter((v.kind,v.detail,v.is_true) for v in j.verdicts))
for v in j.untrue: print("UNTRUE",v)
for n in ("twice","reruns","crossed","asked_again"): print(n,len(getattr(j,n)),getattr(j,n)[:10])
print(out.leaks); print(Counter(f.kind for f in out.records.faults)); 
for b in out.own_faults[:20]: print("BUG",b)
from tests.chaos.story import story
by={t.task.name:t for t in out.records.told}
for v in j.untrue[:6]: print(v.detail, v.why[:200]); print(story(by[v.name],out.records))
for text in out.leaks.sessions[:4]:
    up,sid=text.split()[:2]; sid=sid.strip(",")
    print(text); print([ (e["verb"],e.get("lastEventId"),str(e.get("body"))[:150]) for e in out.records.servers[up]["http"] if e["session"]==sid])
import re
for text in j.twice[:3]:
    for up,srv in out.records.servers.items():
        m=re.search(r"\('([^']+)', '([^']+)', '(.*?)'\)",text)
        if m and m[1]==up:
            es=[e for e in srv["http"] if e["session"]==m[2]]
            print(text); print([(e["verb"],e.get("lastEventId"),str(e.get("body"))[:160]) for e in es])
            names=set(re.findall(r"chaos-\d+-\d+\.",str(es)))
            for n in names: print(story(by[n],out.records))
