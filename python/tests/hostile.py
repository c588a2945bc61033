"""What a hostile agent may send: one change to an honest reply each, and the word that the fault it
gets must have; None where the reply is odd but usable, or where only the evaluation is spoiled."""

import io

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict

NAN, INF = float("nan"), float("inf")
HUGE = 10**5000


def say(**changes):
    """Changes values in the record that server and agents exchange; None removes one."""

    def change(reply):
        record = dict(reply.content["fedstay"])
        for name, value in changes.items():
            record.pop(name, None)
            if value is not None:
                record[name] = value
        reply.content["fedstay"] = ConfigRecord(record)
        return reply

    return change


def send(make, record="arrays", **words):
    """Replaces an array; `make` takes the honest one."""

    def change(reply):
        honest = reply.content["arrays"]["w"].numpy()
        array = make(honest)
        array = array if isinstance(array, Array) else Array(np.asarray(array))
        reply.content[record] = ArrayRecord({"w": array})
        return say(**words)(reply) if words else reply

    return change


def filled(value):
    return lambda honest: np.full_like(honest, value)


def raw(data, shape=(24,), dtype="float64", stype="numpy.ndarray"):
    return lambda honest: Array(dtype=dtype, shape=shape, stype=stype, data=data)


def npy(header_shape):
    """The head of a NumPy file that promises more than there is."""
    out = io.BytesIO()
    np.save(out, np.zeros(24))
    whole = out.getvalue()
    return whole.replace(b"(24,)", header_shape.encode())


def pickled():
    out = io.BytesIO()
    np.save(out, np.array([{}] * 24, dtype=object), allow_pickle=True)
    return out.getvalue()


def extra_array(reply):
    arrays = dict(reply.content["arrays"])
    arrays["backdoor"] = Array(np.zeros(3))
    reply.content["arrays"] = ArrayRecord(arrays)
    return reply


def extra_record(reply):
    reply.content["more"] = ArrayRecord({"w": Array(np.zeros(24))})
    return reply


def extra_gradient_array(reply):
    w = reply.content["arrays"]["w"]
    reply.content["gradient"] = ArrayRecord({"w": w, "x": w})
    return reply


def only(*records):
    """A reply with nothing but these records."""

    def change(reply):
        kept = {name: record for name, record in reply.content.items() if name in records}
        return Message(RecordDict(kept), reply_to=reply.asked)

    return change


def other_key(reply):
    reply.content["arrays"] = ArrayRecord({"v": reply.content["arrays"]["w"]})
    return reply


def fails(reason):
    return lambda reply: Message(Error(5, reason), reply_to=reply.asked)


def from_elsewhere(reply):
    reply.metadata.__dict__["_src_node_id"] = 101
    return reply


def metrics_as_arrays(reply):
    reply.content["arrays"] = MetricRecord({"w": 1.0})
    return reply


#: Replies to "train".
TRAIN = {
    "name of 5000 digits": (say(agent="9" * 5000), "printable characters"),
    "name of 10 MB": (say(agent="x" * 10_000_000), "printable characters"),
    "name of 129 characters": (say(agent="x" * 129), "printable characters"),
    "no characters": (say(agent=""), "printable characters"),
    "only blanks": (say(agent="   "), "printable characters"),
    "newline in the name": (say(agent="b\nagent a leaves"), "printable characters"),
    "escape in the name": (say(agent="\x1b[2Jb"), "printable characters"),
    "zero byte in the name": (say(agent="b\0"), "printable characters"),
    "half a character in the name": (say(agent="b\ud800"), "printable characters"),
    "writing direction in the name": (say(agent="b\u202e"), "printable characters"),
    "name that is a number": (say(agent=7), "no `fedstay` record"),
    "name that is bytes": (say(agent=b"b"), "no `fedstay` record"),
    "name that is a list": (say(agent=["b"]), "no `fedstay` record"),
    "no name": (say(agent=None), "no `fedstay` record"),
    "somebody else's name": (say(agent="a"), "answered as agent a"),
    "an unheard-of name": (say(agent="z"), "answered as agent z"),
    "digits of another script": (say(agent="٣"), "answered as agent"),
    "no record of ours": (only("arrays"), "no `fedstay` record"),
    "nothing at all": (only(), "no `fedstay` record"),
    "no arrays": (only("fedstay"), "no arrays"),
    "loss NaN": (say(loss=NAN), "loss is nan"),
    "loss infinite": (say(loss=INF), "loss is inf"),
    "loss minus infinite": (say(loss=-INF), "loss is -inf"),
    "loss 1e308": (say(loss=1e308), "loss is 1e+308"),
    "loss a word": (say(loss="low"), "loss is 'low'"),
    "loss a list": (say(loss=[0.1]), "loss is [0.1]"),
    "loss true": (say(loss=True), "loss is True"),
    "loss of 5000 digits": (say(loss=HUGE), "integer beyond"),
    "loss bytes": (say(loss=b"1"), "not a number"),
    "loss 1 MB of words": (say(loss="x" * 1_000_000), "not a number"),
    "no loss": (say(loss=None), "`tau`"),
    "loss 1e30": (say(loss=1e30), "taken for garbage"),
    "loss far below": (say(loss=-1e30), "taken for garbage"),
    "epsilon NaN": (say(epsilon=NAN), "epsilon is nan"),
    "epsilon infinite": (say(epsilon=INF), "epsilon is inf"),
    "epsilon a word": (say(epsilon="x"), "epsilon is 'x'"),
    "epsilon a list": (say(epsilon=[1.0]), "epsilon is [1.0]"),
    "epsilon true": (say(epsilon=True), "epsilon is True"),
    "epsilon 1e308": (say(epsilon=1e308), "epsilon is 1e+308"),
    "epsilon 1e30": (say(epsilon=1e30), "taken for garbage"),
    "epsilon of 5000 digits": (say(epsilon=HUGE), "integer beyond"),
    "no epsilon": (say(epsilon=None), "epsilon"),
    "reach 1e300": (say(reach=1e300), "reach is 1e+300"),
    "reach infinite": (say(reach=INF), "reach is inf"),
    "reach NaN": (say(reach=NAN), "reach is nan"),
    "reach zero": (say(reach=0.0), "reach is 0"),
    "reach negative": (say(reach=-1.0), "reach is -1"),
    "reach a word": (say(reach="far"), "reach is 'far'"),
    "reach a million steps": (say(reach=2.5e5), "max_reach"),
    "reach hardly anything": (say(reach=5e-324), None),
    "weights over hardly any reach": (say(kind="weights", reach=5e-324), "direction"),
    "samples NaN": (say(samples=NAN), "samples is nan"),
    "samples infinite": (say(samples=INF), "samples is inf"),
    "samples a word": (say(samples="many"), "samples is 'many'"),
    "samples beyond 64 bits": (say(samples=1e30), "OverflowError"),
    "samples negative": (say(samples=-5), None),
    "standard error NaN": (say(standard_error=NAN), "standard_error is nan"),
    "standard error negative": (say(standard_error=-1.0), "standard error is -1"),
    "standard error 1e308": (say(standard_error=1e308), "standard_error is 1e+308"),
    "tau NaN": (say(loss=None, epsilon=None, tau=NAN), "tau is nan"),
    "tau a word": (say(loss=None, epsilon=None, tau="t"), "tau is 't'"),
    "tau beside the loss": (say(tau=1.0), "`tau` alone"),
    "the nonce of another round": (say(nonce="0123456789abcdef"), "another round's message"),
    "a nonce that is a number": (say(nonce=7), "another round's message"),
    "a nonce that is a list": (say(nonce=["0"]), "another round's message"),
    "no nonce, where there was one before": (say(nonce=None), "it repeats no nonce"),
    "a goodbye without a nonce": (say(leaves=True, nonce=None), "it repeats no nonce"),
    "a goodbye with another round's nonce": (
        say(leaves=True, nonce="0"),
        "another round's message",
    ),
    "kind a number": (say(kind=5), None),
    "weights that are a gradient": (say(kind="weights"), None),
    "NaN everywhere": (send(filled(NAN)), "direction[0] is NaN"),
    "one infinite component": (
        send(lambda h: np.where(np.arange(24) == 7, INF, h)),
        "direction[7]",
    ),
    "garbage 1e30": (send(filled(1e30)), "taken for garbage"),
    "garbage 1e99": (send(filled(1e99)), "taken for garbage"),
    "direction 1e150": (send(filled(1e150)), "out of all range"),
    "direction 1e150 with reach 1e300": (send(filled(1e150), reach=1e300), "reach is 1e+300"),
    "direction 1e308": (send(filled(1e308)), "too large"),
    "weights 1e30": (send(filled(1e30), kind="weights"), "taken for garbage"),
    "weights 1e308": (send(filled(1e308), kind="weights"), "direction[0] is -inf"),
    "weights NaN": (send(filled(NAN), kind="weights"), "NaN"),
    "denormal direction": (send(filled(5e-324)), None),
    "zero direction": (send(filled(0.0)), None),
    "another shape": (send(lambda h: np.zeros(7)), "shape (7,)"),
    "a matrix": (send(lambda h: h.reshape(4, 6)), "shape (4, 6)"),
    "a scalar": (send(lambda h: np.float64(1.0)), "shape ()"),
    "an empty array": (send(lambda h: np.zeros(0)), "shape (0,)"),
    "integers": (send(lambda h: np.ones(24, int)), "not of floats"),
    "complex numbers": (send(lambda h: h.astype(complex)), "not of floats"),
    "truth values": (send(lambda h: h > 0), "not of floats"),
    "half precision": (send(lambda h: h.astype(np.float16)), None),
    "pickled objects": (send(raw(pickled())), "allow_pickle"),
    "random bytes": (send(raw(b"\x93NUMPY but not really")), "Error"),
    "no bytes": (send(raw(b"")), "Error"),
    "half a file": (send(raw(npy("(24,)")[:150])), "Error"),
    "a file of 800 GB": (send(raw(npy("(99999999999,)"))), "Error"),
    "a negative size": (send(raw(npy("(-24,)"))), "Error"),
    "a header that is code": (send(raw(npy("(print(1),)"))), "Error"),
    "another serialisation": (send(raw(b"1", stype="pickle")), "Error"),
    "an extra array": (extra_array, "arrays that the model does not have: ['backdoor']"),
    "an extra record of arrays": (extra_record, "array records that are not ours"),
    "the array under another name": (other_key, "arrays that the model does not have"),
    "metrics in the place of arrays": (metrics_as_arrays, "no arrays"),
    "gradient NaN": (send(filled(NAN), "gradient"), "gradient[0] is NaN"),
    "gradient of another shape": (send(lambda h: np.zeros(7), "gradient"), "shape (7,)"),
    "gradient 1e30": (send(filled(1e30), "gradient"), "taken for garbage"),
    "gradient 1e150": (send(filled(1e150), "gradient"), "out of all range"),
    "gradient with an extra array": (extra_gradient_array, "arrays that the model does not have"),
    "goodbye with epsilon NaN": (say(leaves=True, epsilon=NAN), "epsilon is nan"),
    "goodbye with epsilon infinite": (say(leaves=True, epsilon=INF), "epsilon is inf"),
    "goodbye with epsilon a word": (say(leaves=True, epsilon="x"), "epsilon is 'x'"),
    "goodbye in the place of a truth value": (say(leaves="yes"), None),
    "error without a reason": (fails(""), "error 5"),
    "error of 1 MB": (fails("x" * 1_000_000), "error 5"),
    "error that clears the screen": (fails("\x1b[2J\x1b[31mall is well"), "error 5"),
    "secure aggregation": (fails("KeyError: 'secaggplus_configs'"), "secure aggregation"),
    "an answer from elsewhere": (from_elsewhere, "came from node 101"),
}


def measure(**metrics):
    return lambda reply: Message(
        RecordDict({"metrics": MetricRecord(metrics)}), reply_to=reply.asked
    )


#: Replies to "evaluate".
EVALUATE = {
    "accuracy a list": measure(eval_loss=0.5, eval_acc=[0.5]),
    "accuracy NaN": measure(eval_loss=0.5, eval_acc=NAN),
    "accuracy above one": measure(eval_loss=0.5, eval_acc=2.0),
    "accuracy negative": measure(eval_loss=0.5, eval_acc=-1.0),
    "accuracy of 5000 digits": measure(eval_loss=0.5, eval_acc=HUGE),
    "evaluated loss NaN": measure(eval_loss=NAN),
    "evaluated loss infinite": measure(eval_loss=INF, eval_acc=0.5),
    "evaluated loss a list": measure(eval_loss=[0.5, 0.5]),
    "evaluated loss of 5000 digits": measure(eval_loss=HUGE),
    "evaluated loss 1e308": measure(eval_loss=1e308),
    "no evaluated loss": measure(accuracy=0.5),
    "no metrics": lambda reply: Message(RecordDict(), reply_to=reply.asked),
    "evaluation fails": fails("x"),
    "evaluation from elsewhere": from_elsewhere,
}
